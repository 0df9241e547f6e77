// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/staged_trunk.h"

#include <ATen/ops/adaptive_avg_pool2d.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ssl/models/trunks/feature_index.h"

namespace ssl {

StagedTrunk::StagedTrunk(const std::vector<Stage>& stages, const std::string& pooled) {
  size_t end = 0;
  for (const Stage& stage : stages) {
    names_.push_back(stage.name);
    ends_.push_back(end += stage.num_blocks);
  }
  names_.push_back(pooled);
  names_.push_back("flatten");
}

at::Tensor StagedTrunk::PoolOutput(const at::Tensor& last) const {
  return at::adaptive_avg_pool2d(last, {1, 1}).flatten(1);
}

std::vector<at::Tensor> StagedTrunk::Features(const at::Tensor& images, const std::vector<std::string>& names) {
  std::vector<size_t> indices;
  size_t end = 0;
  for (const std::string& name : names) {
    indices.push_back(FeatureIndex(name, names_));
    end = std::max(end, std::min(indices.back() + 1, ends_.size()));
  }
  std::vector<at::Tensor> features(names.size());
  at::Tensor map = images;
  for (size_t stage = 0; stage < end; ++stage) {
    map = RunRange({stage == 0 ? 0 : ends_[stage - 1], ends_[stage]}, map);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == stage) features[i] = map;
    }
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= ends_.size()) features[i] = PoolOutput(map);
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

}  // namespace ssl
