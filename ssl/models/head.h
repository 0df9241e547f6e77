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
#include <memory>
#include <vector>

#include "ssl/models/model_tensor.h"

namespace ssl {

class Communicator;

class Head {
 public:
  virtual ~Head() = default;

  // features: [N, input_dim()] or [N, input_dim(), h, w]. Returns at least one tensor; the first is
  // [N, OutputDim(...)]. Features of another width throw c10::ValueError, which names both widths.
  virtual std::vector<at::Tensor> Forward(const at::Tensor& features) = 0;

  // Channels of the features; 0 when any number will do.
  virtual int64_t input_dim() const = 0;
  // Width of the first output for features of width `given`; 0 when `given` is 0 and the head does not tell.
  virtual int64_t OutputDim(int64_t given) const = 0;

  // All parameters and buffers, in a fixed order. A head has no other state.
  virtual ModelTensors Tensors() const = 0;

  // Training mode: batch statistics and dropout.
  virtual void SetTraining(bool training) = 0;

  // Batch norm in training takes its statistics over the ranks of `group` from now on. Every rank then runs the same
  // forward passes in the same order, and backward of each. Required, so that no head trains another network than asked
  // for; nothing to do without batch norm.
  virtual void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) = 0;
};

}  // namespace ssl

#endif  // SSL_MODELS_HEAD_H_
