// SPDX-License-Identifier: Apache-2.0
//
// The backbone of a model: images to features. A trunk is one class and one line
// `registries->trunks.Register(name, factory)`; its factory gets the MODEL.TRUNK node.
//
// Tensor code may throw LibTorch exceptions; the training loop turns them into a Status. Not thread-safe.
#ifndef SSL_MODELS_TRUNK_H_
#define SSL_MODELS_TRUNK_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ssl/core/recompute_policy.h"
#include "ssl/models/model_tensor.h"
#include "ssl/models/norm_mode.h"

namespace ssl {

class Communicator;
class ParameterShards;

class Trunk {
 public:
  virtual ~Trunk() = default;

  // images: [B, C, H, W], best channels-last in memory. Returns [B, output_dim()]: the last stage, pooled.
  virtual at::Tensor Forward(const at::Tensor& images) = 0;

  // The stages of these names, in their order: maps [B, C_i, h, w]; stages that the trunk pools already ("res5avg",
  // "lastCLS") are [B, C_i], and tokens are [B, N, C_i]. Stages behind the last requested one are not run. A name that
  // is not among feature_names() throws c10::ValueError, which names the nearest one.
  virtual std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) = 0;

  // In the order of the network; the last one is the trunk's output.
  virtual std::vector<std::string> feature_names() const = 0;

  virtual int64_t output_dim() const = 0;

  // All parameters and buffers, in a fixed order. A trunk has no other state.
  virtual ModelTensors Tensors() const = 0;

  // Training mode: batch statistics. Evaluation mode: running statistics.
  virtual void SetTraining(bool training) = 0;

  // Batch norm in training takes its statistics over the ranks of `group` from now on. Every rank then runs the same
  // forward passes in the same order, and backward of each. Required, so that no trunk trains another network than
  // asked for; nothing to do without batch norm.
  virtual void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) = 0;

  // The blocks that the trunk is a chain of, each small enough to be one unit of memory and time: a stem, a residual
  // block. 0: it is no such chain, and cannot recompute.
  virtual size_t num_blocks() const { return 0; }

  // Block `index` of `input`: the images, or what the block before gave.
  virtual at::Tensor RunBlock(size_t index, const at::Tensor& input, NormMode mode) const { return input; }

  // The trunk's output, [B, output_dim()], of what the last block gives. It has no parameters.
  virtual at::Tensor PoolOutput(const at::Tensor& last) const { return last; }

  // What Tensors() lists of block `index`.
  virtual ModelTensors BlockTensors(size_t index) const { return {}; }

  // The names of the blocks: of the stage, with a number where the stage has several: "conv1", "res2.0".
  virtual std::vector<std::string> block_names() const { return {}; }

  // From now on, the parameters of block `index` are those of block `index` of `shards`, which outlives the trunk
  // (ssl/core/parameter_shards.h). For trunks with blocks.
  virtual void SetShards(ParameterShards* shards) {}

  // From now on, forward passes that train keep of each part of the plan its input alone, and backward runs it again
  // (ssl/models/recompute.h). Ranges are within num_blocks().
  virtual void SetRecomputed(RecomputePlan plan) {}
};

}  // namespace ssl

#endif  // SSL_MODELS_TRUNK_H_
