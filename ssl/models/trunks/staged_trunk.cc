// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/staged_trunk.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {
namespace {

constexpr size_t kPooledNames = 2;

at::Tensor Average(const at::Tensor& map) { return at::adaptive_avg_pool2d(map, {1, 1}).flatten(1); }

}  // namespace

StagedTrunk::StagedTrunk(std::vector<std::string> stages, const std::string& pooled) : names_(std::move(stages)) {
  names_.push_back(pooled);
  names_.push_back("flatten");
}

at::Tensor StagedTrunk::Forward(const at::Tensor& images) {
  at::Tensor map = images;
  for (size_t stage = 0; stage + kPooledNames < names_.size(); ++stage) map = RunStage(stage, map);
  return Average(map);
}

std::vector<at::Tensor> StagedTrunk::Features(const at::Tensor& images, const std::vector<std::string>& names) {
  const size_t num_stages = names_.size() - kPooledNames;
  std::vector<size_t> indices;
  size_t end = 0;
  for (const std::string& name : names) {
    indices.push_back(IndexOf(name));
    end = std::max(end, std::min(indices.back() + 1, num_stages));
  }
  std::vector<at::Tensor> features(names.size());
  at::Tensor map = images;
  for (size_t stage = 0; stage < end; ++stage) {
    map = RunStage(stage, map);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == stage) features[i] = map;
    }
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= num_stages) features[i] = Average(map);
  }
  return features;
}

size_t StagedTrunk::IndexOf(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  TORCH_CHECK_VALUE(found != names_.end(), "feature '", name, "' is not one of ", absl::StrJoin(names_, ", "),
                    DidYouMean(name, names_));
  return static_cast<size_t>(found - names_.begin());
}

}  // namespace ssl
