// SPDX-License-Identifier: Apache-2.0
//
// What stands on a trunk: features to the outputs that a loss reads. A head is one class and one line
// `registries->heads.Register(name, factory)`; its factory gets the head's own arguments, as in the configuration
// `MODEL.HEAD.PARAMS: [[name, {arguments}]]`.
//
// Tensor code may throw LibTorch exceptions; the training loop turns them into a Status. Not thread-safe.
#ifndef SSL_MODELS_HEAD_H_
#define SSL_MODELS_HEAD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "ssl/models/model_tensor.h"

namespace ssl {

class Head {
 public:
  virtual ~Head() = default;

  // features: [N, input_dim()]. Returns at least one tensor; the first is [N, output_dim()].
  virtual std::vector<at::Tensor> Forward(const at::Tensor& features) = 0;

  virtual int64_t input_dim() const = 0;
  virtual int64_t output_dim() const = 0;

  // All parameters and buffers, in a fixed order. A head has no other state.
  virtual ModelTensors Tensors() const = 0;

  // Training mode: batch statistics and dropout.
  virtual void SetTraining(bool training) = 0;
};

}  // namespace ssl

#endif  // SSL_MODELS_HEAD_H_
