// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/sharded_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/string_view.h"
#include "ssl/core/parameter_shards.h"

namespace ssl {
namespace {

// By name; those of the model that are sharded.
std::unordered_map<std::string, at::Tensor> Shards(Model& model) {
  std::unordered_map<std::string, at::Tensor> shards;
  for (NamedParameter& parameter : model.Parameters()) {
    if (model.parameter_shards()->IsShard(parameter.value)) shards.emplace(parameter.name, std::move(parameter.value));
  }
  return shards;
}

// Behind the last '/'.
std::string ParameterOf(const std::string& name) { return name.substr(name.rfind('/') + 1); }

std::vector<int64_t> WholeSizes(const ParameterShards& shards, const at::Tensor& shard) {
  std::vector<int64_t> sizes = shard.sizes().vec();
  sizes[0] = shards.WholeRows(shard);
  return sizes;
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> TakeWholeState(Model* model, std::vector<NamedTensor>* state) {
  if (model == nullptr || model->parameter_shards() == nullptr) return std::vector<NamedTensor>();
  ParameterShards& shards = *model->parameter_shards();
  const std::unordered_map<std::string, at::Tensor> by_name = Shards(*model);
  const bool keeps = shards.communicator().rank() == 0;
  std::vector<NamedTensor> whole;
  std::vector<NamedTensor> rest;
  for (NamedTensor& entry : *state) {
    const auto shard = by_name.find(ParameterOf(entry.name));
    if (shard == by_name.end() || !entry.tensor.defined() || entry.tensor.sizes() != shard->second.sizes()) {
      rest.push_back(std::move(entry));
      continue;
    }
    at::Tensor value = shards.Whole(entry.tensor, shards.WholeRows(shard->second));
    if (keeps) whole.push_back({entry.name, value.cpu()});
  }
  *state = std::move(rest);
  return whole;
}

void KeepOwnRows(Model* model, std::vector<NamedTensor>* state) {
  if (model == nullptr || model->parameter_shards() == nullptr) return;
  const ParameterShards& shards = *model->parameter_shards();
  const std::unordered_map<std::string, at::Tensor> by_name = Shards(*model);
  for (NamedTensor& entry : *state) {
    const auto shard = by_name.find(ParameterOf(entry.name));
    if (shard == by_name.end() || entry.tensor.sizes() != WholeSizes(shards, shard->second)) continue;
    entry.tensor = shards.OwnRows(entry.tensor, shard->second.size(0));
  }
}

}  // namespace ssl
