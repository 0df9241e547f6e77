// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/staged_trunk.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/models/recompute.h"

namespace ssl {
namespace {

constexpr size_t kPooledNames = 2;

at::Tensor Average(const at::Tensor& map) { return at::adaptive_avg_pool2d(map, {1, 1}).flatten(1); }

}  // namespace

StagedTrunk::StagedTrunk(const std::vector<Stage>& stages, const std::string& pooled) {
  size_t end = 0;
  for (const Stage& stage : stages) {
    names_.push_back(stage.name);
    ends_.push_back(end += stage.num_blocks);
  }
  names_.push_back(pooled);
  names_.push_back("flatten");
}

at::Tensor StagedTrunk::Forward(const at::Tensor& images) {
  if (!training_ || !at::GradMode::is_enabled())
    return Average(RunRange({0, num_blocks()}, images, NormModeFor(training_)));
  at::Tensor map = images;
  size_t next = 0;
  for (const BlockRange& part : plan_.recomputed) {
    map = RunAndRecomputeRange(part, RunObserved({next, part.begin}, map));
    next = part.end;
  }
  return Average(RunObserved({next, num_blocks()}, map));
}

std::vector<at::Tensor> StagedTrunk::Features(const at::Tensor& images, const std::vector<std::string>& names) {
  std::vector<size_t> indices;
  size_t end = 0;
  for (const std::string& name : names) {
    indices.push_back(IndexOf(name));
    end = std::max(end, std::min(indices.back() + 1, ends_.size()));
  }
  std::vector<at::Tensor> features(names.size());
  at::Tensor map = images;
  for (size_t stage = 0; stage < end; ++stage) {
    map = RunRange({stage == 0 ? 0 : ends_[stage - 1], ends_[stage]}, map, NormModeFor(training_));
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == stage) features[i] = map;
    }
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= ends_.size()) features[i] = Average(map);
  }
  return features;
}

// Of a stage of one block the stage's own, else with the number of the block in its stage.
std::vector<std::string> StagedTrunk::block_names() const {
  std::vector<std::string> names;
  for (size_t stage = 0; stage < ends_.size(); ++stage) {
    const size_t begin = stage == 0 ? 0 : ends_[stage - 1];
    for (size_t block = begin; block < ends_[stage]; ++block) {
      names.push_back(ends_[stage] - begin == 1 ? names_[stage] : absl::StrCat(names_[stage], ".", block - begin));
    }
  }
  return names;
}

ModelTensors StagedTrunk::Tensors() const {
  ModelTensors tensors;
  for (size_t block = 0; block < num_blocks(); ++block) {
    for (ModelTensor& tensor : BlockTensors(block)) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

at::Tensor StagedTrunk::RunWhole(size_t block, const at::Tensor& map, NormMode mode) const {
  if (shards_ == nullptr) return RunBlock(block, map, mode);
  const bool again = mode == NormMode::kRecompute;
  const auto pass = again ? ParameterShards::Pass::kRecompute : ParameterShards::Pass::kForward;
  return shards_->Run(block, pass, [&] { return std::vector<at::Tensor>{RunBlock(block, map, mode)}; })[0];
}

at::Tensor StagedTrunk::RunRange(BlockRange range, at::Tensor map, NormMode mode) const {
  for (size_t block = range.begin; block < range.end; ++block) map = RunWhole(block, map, mode);
  return map;
}

at::Tensor StagedTrunk::RunObserved(BlockRange range, const at::Tensor& map) const {
  if (plan_.observer == nullptr || range.begin == range.end) return RunRange(range, map, NormMode::kTraining);
  plan_.observer->BeforeRun(range, /*again=*/false);
  const at::Tensor output = RunRange(range, map, NormMode::kTraining);
  plan_.observer->AfterRun(range, /*again=*/false);
  return output;
}

at::Tensor StagedTrunk::RunAndRecomputeRange(BlockRange range, const at::Tensor& map) const {
  Recomputable part;
  part.run = [this, range](const at::Tensor& input, NormMode mode) { return RunRange(range, input, mode); };
  if (plan_.observer != nullptr) {
    part.run = [run = std::move(part.run), range, observer = plan_.observer](const at::Tensor& input, NormMode mode) {
      observer->BeforeRun(range, mode == NormMode::kRecompute);
      const at::Tensor output = run(input, mode);
      observer->AfterRun(range, mode == NormMode::kRecompute);
      return output;
    };
    part.after_gradients = [range, observer = plan_.observer] { observer->AfterGradients(range); };
  }
  for (size_t block = range.begin; block < range.end; ++block) {
    if (shards_ != nullptr) shards_->ExpectGradients(block);
    for (const ModelTensor& tensor : BlockTensors(block)) part.parameters.push_back(tensor.value);
  }
  return RunAndRecompute(part, map);
}

size_t StagedTrunk::IndexOf(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  TORCH_CHECK_VALUE(found != names_.end(), "feature '", name, "' is not one of ", absl::StrJoin(names_, ", "),
                    DidYouMean(name, names_));
  return static_cast<size_t>(found - names_.begin());
}

}  // namespace ssl
