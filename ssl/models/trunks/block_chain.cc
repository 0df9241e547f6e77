// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/block_chain.h"

#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

#include "ssl/core/parameter_shards.h"
#include "ssl/models/recompute.h"

namespace ssl {

at::Tensor BlockChain::Forward(const at::Tensor& images) {
  if (!training_ || !at::GradMode::is_enabled()) return PoolOutput(RunRange({0, num_blocks()}, images));
  at::Tensor output = images;
  size_t next = 0;
  for (const BlockRange& part : plan_.recomputed) {
    output = RunAndRecomputeRange(part, RunObserved({next, part.begin}, output));
    next = part.end;
  }
  return PoolOutput(RunObserved({next, num_blocks()}, output));
}

ModelTensors BlockChain::Tensors() const {
  ModelTensors tensors;
  for (size_t block = 0; block < num_blocks(); ++block) {
    for (ModelTensor& tensor : BlockTensors(block)) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

at::Tensor BlockChain::RunRange(BlockRange range, const at::Tensor& input) const {
  return RunRange(range, input, NormModeFor(training_));
}

at::Tensor BlockChain::RunWhole(size_t block, const at::Tensor& input, NormMode mode) const {
  if (shards_ == nullptr) return RunBlock(block, input, mode);
  const bool again = mode == NormMode::kRecompute;
  const auto pass = again ? ParameterShards::Pass::kRecompute : ParameterShards::Pass::kForward;
  return shards_->Run(block, pass, [&] { return std::vector<at::Tensor>{RunBlock(block, input, mode)}; })[0];
}

at::Tensor BlockChain::RunRange(BlockRange range, at::Tensor input, NormMode mode) const {
  for (size_t block = range.begin; block < range.end; ++block) input = RunWhole(block, input, mode);
  return input;
}

at::Tensor BlockChain::RunObserved(BlockRange range, const at::Tensor& input) const {
  if (plan_.observer == nullptr || range.begin == range.end) return RunRange(range, input, NormMode::kTraining);
  plan_.observer->BeforeRun(range, /*again=*/false);
  const at::Tensor output = RunRange(range, input, NormMode::kTraining);
  plan_.observer->AfterRun(range, /*again=*/false);
  return output;
}

at::Tensor BlockChain::RunAndRecomputeRange(BlockRange range, const at::Tensor& input) const {
  Recomputable part;
  part.run = [this, range](const at::Tensor& of_part, NormMode mode) { return RunRange(range, of_part, mode); };
  if (plan_.observer != nullptr) {
    part.run = [run = std::move(part.run), range, observer = plan_.observer](const at::Tensor& of_part, NormMode mode) {
      observer->BeforeRun(range, mode == NormMode::kRecompute);
      const at::Tensor output = run(of_part, mode);
      observer->AfterRun(range, mode == NormMode::kRecompute);
      return output;
    };
    part.after_gradients = [range, observer = plan_.observer] { observer->AfterGradients(range); };
  }
  for (size_t block = range.begin; block < range.end; ++block) {
    if (shards_ != nullptr) shards_->ExpectGradients(block);
    for (const ModelTensor& tensor : BlockTensors(block)) part.parameters.push_back(tensor.value);
  }
  return RunAndRecompute(part, input);
}

}  // namespace ssl
