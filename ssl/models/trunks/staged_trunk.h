// SPDX-License-Identifier: Apache-2.0
//
// A trunk that is a chain of blocks in stages, each stage a named feature, with an average over the last one's pixels
// at the end.
#ifndef SSL_MODELS_TRUNKS_STAGED_TRUNK_H_
#define SSL_MODELS_TRUNKS_STAGED_TRUNK_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ssl/models/trunk.h"

namespace ssl {

// A stage and how many blocks it has.
struct Stage {
  std::string name;
  size_t num_blocks = 1;
};

class StagedTrunk : public Trunk {
 public:
  at::Tensor Forward(const at::Tensor& images) override;
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) override;
  std::vector<std::string> feature_names() const override { return names_; }
  ModelTensors Tensors() const override;
  std::vector<std::string> block_names() const override;
  void SetTraining(bool training) override { training_ = training; }
  size_t num_blocks() const override { return ends_.back(); }
  void SetShards(ParameterShards* shards) override { shards_ = shards; }
  void SetRecomputed(RecomputePlan plan) override { plan_ = std::move(plan); }

 protected:
  // stages: at least one, in the order of the network. pooled: the name of the average; "flatten" is another.
  StagedTrunk(const std::vector<Stage>& stages, const std::string& pooled);

 private:
  // RunBlock, with the block's parameters there.
  at::Tensor RunWhole(size_t block, const at::Tensor& map, NormMode mode) const;
  // What the blocks `range` make of `map`, as they are.
  at::Tensor RunRange(BlockRange range, at::Tensor map, NormMode mode) const;
  // The same in a pass that trains; the observer of the plan sees it.
  at::Tensor RunObserved(BlockRange range, const at::Tensor& map) const;
  at::Tensor RunAndRecomputeRange(BlockRange range, const at::Tensor& map) const;
  // The index among the names; the pooled ones come last.
  size_t IndexOf(const std::string& name) const;

  std::vector<std::string> names_;
  std::vector<size_t> ends_;  // of each stage: the block behind its last
  RecomputePlan plan_;
  ParameterShards* shards_ = nullptr;
  bool training_ = true;
};

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_STAGED_TRUNK_H_
