// SPDX-License-Identifier: Apache-2.0
//
// A convolution with its normalisation, the brick of convolutional trunks.
#ifndef SSL_MODELS_CONV_NORM_H_
#define SSL_MODELS_CONV_NORM_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <variant>

#include "ssl/models/layers.h"
#include "ssl/models/model_tensor.h"
#include "ssl/models/norm_mode.h"

namespace ssl {

class Communicator;

using NormLayer = std::variant<BatchNormLayer, GroupNormLayer>;

// Appends the norm's tensors under "<prefix>weight" and so on.
void ListNorm(const NormLayer& norm, const std::string& prefix, ModelTensors* tensors);

// Sets the norm's weight to zero, so that a residual block starts as its shortcut.
void ZeroNormWeight(const NormLayer& norm);

struct ConvNorm {
  ConvLayer conv;
  NormLayer norm;

  // Batch norm: of `group` from now on.
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group);

  // norm(conv(input)).
  at::Tensor Forward(const at::Tensor& input, NormMode mode) const;

  // relu(norm(conv(input)) + shortcut); shortcut may be undefined. Batch norm by the batch's statistics runs as one
  // operation with what follows it.
  at::Tensor ForwardRelu(const at::Tensor& input, const at::Tensor& shortcut, NormMode mode) const;
};

}  // namespace ssl

#endif  // SSL_MODELS_CONV_NORM_H_
