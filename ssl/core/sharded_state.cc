// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/sharded_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/state_dict.h"

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

constexpr char kRowName[] = "averages";

// What a row of averages is of: the model's float32 parameters, in the order of its state.
absl::StatusOr<std::vector<at::Tensor>> PartsOfRow(Model& model) {
  std::set<const void*> parameters;
  for (const NamedParameter& parameter : model.Parameters()) parameters.insert(parameter.value.const_data_ptr());
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(model));
  std::vector<at::Tensor> parts;
  for (const NamedTensor& entry : state) {
    const bool is_part =
        entry.tensor.scalar_type() == at::kFloat && parameters.count(entry.tensor.const_data_ptr()) > 0;
    if (is_part) parts.push_back(entry.tensor);  // itself: shards are known by identity
  }
  return parts;
}

// Of a row of this rank's shards, or of whole parameters.
enum class RowKind { kOwn, kWhole };

std::vector<std::vector<int64_t>> SizesOf(const ParameterShards& shards, const std::vector<at::Tensor>& parts,
                                          RowKind kind) {
  std::vector<std::vector<int64_t>> sizes;
  for (const at::Tensor& part : parts) {
    sizes.push_back(kind == RowKind::kWhole && shards.IsShard(part) ? WholeSizes(shards, part) : part.sizes().vec());
  }
  return sizes;
}

// The tensors that lie in `row` one after the other; none when it is no row of these.
std::vector<at::Tensor> Unpacked(const NamedTensor& row, const std::vector<std::vector<int64_t>>& sizes) {
  if (ParameterOf(row.name) != kRowName || !row.tensor.defined() || row.tensor.dim() != 1) return {};
  std::vector<at::Tensor> tensors;
  int64_t offset = 0;
  for (const std::vector<int64_t>& size : sizes) {
    const int64_t elements = c10::multiply_integers(size);
    if (offset + elements > row.tensor.numel()) return {};
    tensors.push_back(row.tensor.narrow(0, offset, elements).view(size));
    offset += elements;
  }
  return offset == row.tensor.numel() ? tensors : std::vector<at::Tensor>();
}

at::Tensor Packed(std::vector<at::Tensor> tensors) {
  for (at::Tensor& tensor : tensors) tensor = tensor.reshape({-1});
  return at::cat(tensors);
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> TakeWholeState(Model* model, std::vector<NamedTensor>* state) {
  if (model == nullptr || model->parameter_shards() == nullptr) return std::vector<NamedTensor>();
  ParameterShards& shards = *model->parameter_shards();
  const std::unordered_map<std::string, at::Tensor> by_name = Shards(*model);
  SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parts, PartsOfRow(*model));
  const std::vector<std::vector<int64_t>> own_sizes = SizesOf(shards, parts, RowKind::kOwn);
  const bool keeps = shards.communicator().rank() == 0;
  std::vector<NamedTensor> whole;
  std::vector<NamedTensor> rest;
  for (NamedTensor& entry : *state) {
    std::vector<at::Tensor> row = Unpacked(entry, own_sizes);
    if (!row.empty()) {
      for (size_t i = 0; i < row.size(); ++i) {
        if (shards.IsShard(parts[i])) row[i] = shards.Whole(row[i], shards.WholeRows(parts[i]));
        row[i] = keeps ? row[i].cpu() : at::Tensor();
      }
      if (keeps) whole.push_back({entry.name, Packed(std::move(row))});
      continue;
    }
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

absl::Status KeepOwnRows(Model* model, std::vector<NamedTensor>* state) {
  if (model == nullptr || model->parameter_shards() == nullptr) return absl::OkStatus();
  const ParameterShards& shards = *model->parameter_shards();
  const std::unordered_map<std::string, at::Tensor> by_name = Shards(*model);
  SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parts, PartsOfRow(*model));
  const std::vector<std::vector<int64_t>> whole_sizes = SizesOf(shards, parts, RowKind::kWhole);
  for (NamedTensor& entry : *state) {
    std::vector<at::Tensor> row = Unpacked(entry, whole_sizes);
    for (size_t i = 0; i < row.size(); ++i) {
      if (shards.IsShard(parts[i])) row[i] = shards.OwnRows(row[i], parts[i].size(0));
    }
    if (!row.empty()) entry.tensor = Packed(std::move(row));
    const auto shard = by_name.find(ParameterOf(entry.name));
    if (shard == by_name.end() || entry.tensor.sizes() != WholeSizes(shards, shard->second)) continue;
    entry.tensor = shards.OwnRows(entry.tensor, shard->second.size(0));
  }
  return absl::OkStatus();
}

}  // namespace ssl
