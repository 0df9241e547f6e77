// SPDX-License-Identifier: Apache-2.0
//
// The backbone of a model: images to features. A trunk is one class and one line
// `registries->trunks.Register(name, factory)`; its factory gets the MODEL.TRUNK node.
//
// Tensor code may throw LibTorch exceptions; the training loop turns them into a Status. Not thread-safe.
#ifndef SSL_MODELS_TRUNK_H_
#define SSL_MODELS_TRUNK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/models/model_tensor.h"

namespace ssl {

class Trunk {
 public:
  virtual ~Trunk() = default;

  // images: [B, C, H, W], best channels-last in memory. Returns [B, output_dim()]: the last stage, average-pooled.
  virtual at::Tensor Forward(const at::Tensor& images) = 0;

  // The stages of these names, in their order: maps [B, C_i, h, w]; stages that the trunk pools already ("res5avg") are
  // [B, C_i]. Stages behind the last requested one are not run. A name that is not among feature_names() throws
  // c10::ValueError, which names the nearest one.
  virtual std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) = 0;

  // In the order of the network.
  virtual std::vector<std::string> feature_names() const = 0;

  virtual int64_t output_dim() const = 0;

  // All parameters and buffers, in a fixed order. A trunk has no other state.
  virtual ModelTensors Tensors() const = 0;

  // Training mode: batch statistics. Evaluation mode: running statistics.
  virtual void SetTraining(bool training) = 0;
};

}  // namespace ssl

#endif  // SSL_MODELS_TRUNK_H_
