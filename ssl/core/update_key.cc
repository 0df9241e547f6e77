// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/update_key.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

int64_t Bits(double value) {
  int64_t bits = 0;
  static_assert(sizeof(bits) == sizeof(value), "a double has 64 bits");
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void AddLayoutOf(const at::Tensor& tensor, std::vector<int64_t>* values) {
  values->push_back(tensor.defined() ? static_cast<int64_t>(tensor.scalar_type()) : -1);
  if (!tensor.defined()) return;
  values->push_back(tensor.dim());
  for (const int64_t size : tensor.sizes()) values->push_back(size);
  for (const int64_t stride : tensor.strides()) values->push_back(stride);
}

}  // namespace

void UpdateKey::AddLayout(std::string what, const Batch& batch) {
  std::vector<int64_t> values = {static_cast<int64_t>(batch.views.size())};
  for (const at::Tensor& view : batch.views) AddLayoutOf(view, &values);
  for (const auto& [name, input] : batch.named_inputs) {
    for (const char letter : name) values.push_back(letter);
    AddLayoutOf(input, &values);
  }
  AddLayoutOf(batch.targets, &values);
  parts_.push_back({std::move(what), std::move(values), /*is_layout=*/true});
}

void UpdateKey::AddGroups(const std::vector<ParameterGroup>& groups) {
  std::vector<int64_t> parameters;
  for (const ParameterGroup& group : groups) {
    Add(absl::StrCat("the weight decay of parameter group ", group.name), {Bits(group.weight_decay)});
    Add(absl::StrCat("the momentum of parameter group ", group.name), {Bits(group.momentum)});
    for (const at::Tensor& parameter : group.parameters) {
      parameters.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(parameter.const_data_ptr())));
      parameters.push_back(parameter.requires_grad() ? 1 : 0);
    }
  }
  Add("where the parameters lie, or which of them train", std::move(parameters));
}

std::string UpdateKey::Difference(const UpdateKey& other) const {
  const size_t common = std::min(parts_.size(), other.parts_.size());
  for (size_t i = 0; i < common; ++i) {
    if (parts_[i].what != other.parts_[i].what || parts_[i].values != other.parts_[i].values) return parts_[i].what;
  }
  if (parts_.size() == other.parts_.size()) return "";
  return parts_.size() > common ? parts_[common].what : other.parts_[common].what;
}

bool UpdateKey::DiffersByLayoutAlone(const UpdateKey& other) const {
  return std::equal(parts_.begin(), parts_.end(), other.parts_.begin(), other.parts_.end(),
                    [](const Part& a, const Part& b) {
                      return a.what == b.what && (a.values == b.values || (a.is_layout && b.is_layout));
                    });
}

}  // namespace ssl
