// SPDX-License-Identifier: Apache-2.0
//
// A trunk that is a chain of blocks. Runs them: whole or in parts that backward runs again, with parameters that are
// there or that ranks share out.
#ifndef SSL_MODELS_TRUNKS_BLOCK_CHAIN_H_
#define SSL_MODELS_TRUNKS_BLOCK_CHAIN_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <utility>

#include "ssl/models/trunk.h"

namespace ssl {

class BlockChain : public Trunk {
 public:
  at::Tensor Forward(const at::Tensor& images) override;
  ModelTensors Tensors() const override;
  void SetTraining(bool training) override { training_ = training; }
  void SetShards(ParameterShards* shards) override { shards_ = shards; }
  void SetRecomputed(RecomputePlan plan) override { plan_ = std::move(plan); }

 protected:
  // What the blocks `range` make of `input` in the trunk's mode; nothing is run again.
  at::Tensor RunRange(BlockRange range, const at::Tensor& input) const;

 private:
  // RunBlock, with the block's parameters there.
  at::Tensor RunWhole(size_t block, const at::Tensor& input, NormMode mode) const;
  at::Tensor RunRange(BlockRange range, at::Tensor input, NormMode mode) const;
  // The same in a pass that trains; the observer of the plan sees it.
  at::Tensor RunObserved(BlockRange range, const at::Tensor& input) const;
  at::Tensor RunAndRecomputeRange(BlockRange range, const at::Tensor& input) const;

  RecomputePlan plan_;
  ParameterShards* shards_ = nullptr;
  bool training_ = true;
};

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_BLOCK_CHAIN_H_
