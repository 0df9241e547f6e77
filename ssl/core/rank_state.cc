// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/rank_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

int64_t Fingerprint(const at::Tensor& tensor) {
  const at::Tensor bytes = tensor.detach().cpu().contiguous();
  const uint32_t kind =
      Crc32c(absl::StrCat(static_cast<int>(bytes.scalar_type()), ",", absl::StrJoin(bytes.sizes(), ",")));
  return ExtendCrc32c(kind, {static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
}

// [2]: how many entries there are, and what they are called.
at::Tensor Names(const std::vector<NamedTensor>& state) {
  uint32_t names = 0;
  for (const NamedTensor& entry : state) names = ExtendCrc32c(names, absl::StrCat(entry.name, "\n"));
  at::Tensor described = at::empty({2}, at::kLong);
  described[0].fill_(static_cast<int64_t>(state.size()));
  described[1].fill_(static_cast<int64_t>(names));
  return described;
}

// [number of entries]
at::Tensor Fingerprints(const std::vector<NamedTensor>& state) {
  at::Tensor fingerprints = at::empty({static_cast<int64_t>(state.size())}, at::kLong);
  int64_t* const values = fingerprints.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < state.size(); ++i) values[i] = Fingerprint(state[i].tensor);
  return fingerprints;
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> StateOfItsOwn(std::vector<NamedTensor> state, Communicator& communicator) {
  if (communicator.size() == 1) return state;
  const at::Tensor own_names = Names(state);
  at::Tensor names = own_names.clone();
  SSL_RETURN_IF_ERROR(communicator.Broadcast(names, 0));
  const at::Tensor own = Fingerprints(state);
  at::Tensor of_rank_zero = communicator.rank() == 0 ? own.clone() : at::empty({names[0].item<int64_t>()}, at::kLong);
  SSL_RETURN_IF_ERROR(communicator.Broadcast(of_rank_zero, 0));
  if (communicator.rank() == 0 || !names.equal(own_names)) return state;
  const int64_t* const expected = of_rank_zero.const_data_ptr<int64_t>();
  const int64_t* const found = own.const_data_ptr<int64_t>();
  std::vector<NamedTensor> different;
  for (size_t i = 0; i < state.size(); ++i) {
    if (found[i] != expected[i]) different.push_back(std::move(state[i]));
  }
  return different;
}

std::vector<NamedTensor> OverRankZero(const std::vector<NamedTensor>& rank_zero, std::vector<NamedTensor> own,
                                      const std::vector<NamedTensor>& walked) {
  std::set<absl::string_view> wanted;
  for (const NamedTensor& entry : walked) wanted.insert(entry.name);
  for (const NamedTensor& entry : own) wanted.erase(entry.name);
  std::vector<NamedTensor> state = std::move(own);
  for (const NamedTensor& entry : rank_zero) {
    if (wanted.count(entry.name) > 0) state.push_back(entry);
  }
  return state;
}

}  // namespace ssl
