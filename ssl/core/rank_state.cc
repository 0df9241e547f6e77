// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/rank_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

int64_t Fingerprint(const at::Tensor& tensor) {
  const at::Tensor bytes = tensor.detach().cpu().contiguous();
  const uint32_t kind =
      Crc32c(absl::StrCat(static_cast<int>(bytes.scalar_type()), ",", absl::StrJoin(bytes.sizes(), ",")));
  return ExtendCrc32c(kind, {static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
}

// [number of entries]
at::Tensor Fingerprints(const std::vector<NamedTensor>& state) {
  at::Tensor fingerprints = at::empty({static_cast<int64_t>(state.size())}, at::kLong);
  int64_t* const values = fingerprints.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < state.size(); ++i) values[i] = Fingerprint(state[i].tensor);
  return fingerprints;
}

// Those that rank 0 passes, on all ranks. Names have no line breaks: they are those of scopes and parts.
absl::StatusOr<std::vector<std::string>> NamesOfRankZero(const std::vector<std::string>& names,
                                                         Communicator& communicator) {
  std::string text = absl::StrJoin(names, "\n");
  at::Tensor sizes = at::empty({2}, at::kLong);
  sizes[0].fill_(static_cast<int64_t>(names.size()));
  sizes[1].fill_(static_cast<int64_t>(text.size()));
  SSL_RETURN_IF_ERROR(communicator.Broadcast(sizes, 0));
  if (sizes[0].item<int64_t>() == 0) return std::vector<std::string>();
  at::Tensor bytes = at::empty({sizes[1].item<int64_t>()}, at::kByte);
  if (communicator.rank() == 0) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  SSL_RETURN_IF_ERROR(communicator.Broadcast(bytes, 0));
  text.assign(static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes());
  return std::vector<std::string>(absl::StrSplit(text, '\n'));
}

std::vector<std::string> NamesOf(const std::vector<NamedTensor>& state) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : state) names.push_back(entry.name);
  return names;
}

// The rows of all ranks in turn, of which this rank gets every so many.
absl::StatusOr<at::Tensor> DealRows(const std::string& name, const std::vector<at::Tensor>& values, int64_t dimension,
                                    const Communicator& communicator) {
  const at::Tensor rows = at::stack(values, dimension + 1).flatten(dimension, dimension + 1);
  if (rows.size(dimension) % communicator.size() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", rows.size(dimension),
                                                   " rows over all ranks that saved it, which ", communicator.size(),
                                                   " ranks cannot share equally; go on with as many ranks as before"));
  }
  return rows.slice(dimension, communicator.rank(), std::nullopt, communicator.size()).contiguous();
}

at::Tensor Sum(const std::vector<at::Tensor>& values, const Communicator& communicator) {
  if (communicator.rank() != 0) return at::zeros_like(values[0]);
  return at::stack(values).sum(0).to(values[0].scalar_type());
}

at::Tensor Mean(const std::vector<at::Tensor>& values) {
  return at::stack(values).to(at::kDouble).mean(0).to(values[0].scalar_type());
}

at::Tensor Join(const std::vector<at::Tensor>& values, int64_t dimension, const Communicator& communicator) {
  return communicator.rank() == 0 ? at::cat(values, dimension) : values[0].narrow(dimension, 0, 0).clone();
}

absl::string_view Participle(RankValues values) {
  switch (values) {
    case RankValues::kDealRows:
      return "dealt out anew";
    case RankValues::kSum:
      return "added up";
    case RankValues::kMean:
      return "averaged";
    case RankValues::kJoin:
      return "put together";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> StateOfItsOwn(std::vector<NamedTensor> state, Communicator& communicator) {
  if (communicator.size() == 1) return state;
  const bool is_rank_zero = communicator.rank() == 0;
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfRankZero(NamesOf(state), communicator));
  const at::Tensor own = Fingerprints(state);
  at::Tensor of_rank_zero = is_rank_zero ? own.clone() : at::empty({static_cast<int64_t>(names.size())}, at::kLong);
  SSL_RETURN_IF_ERROR(communicator.Broadcast(of_rank_zero, 0));
  if (is_rank_zero) return state;
  std::unordered_map<std::string, int64_t> expected;
  for (size_t i = 0; i < names.size(); ++i) expected[names[i]] = of_rank_zero.const_data_ptr<int64_t>()[i];
  std::vector<NamedTensor> different;
  for (size_t i = 0; i < state.size(); ++i) {
    const auto there = expected.find(state[i].name);
    const bool is_equal = there != expected.end() && there->second == own.const_data_ptr<int64_t>()[i];
    if (!is_equal) different.push_back(std::move(state[i]));
  }
  return different;
}

SavedRanks::SavedRanks(int64_t count, Read read) : count_(count), read_(std::move(read)) {}

absl::StatusOr<const SavedRanks::Entries*> SavedRanks::OfRank(int64_t rank) {
  const auto known = read_ranks_.find(rank);
  if (known != read_ranks_.end()) return &known->second;
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> entries, read_(rank));
  Entries& of_rank = read_ranks_[rank];
  for (NamedTensor& entry : entries) of_rank.emplace(std::move(entry.name), std::move(entry.tensor));
  return &of_rank;
}

absl::StatusOr<at::Tensor> SavedRanks::Find(const std::string& name) {
  for (int64_t rank = 0; rank < count_; ++rank) {
    SSL_ASSIGN_OR_RETURN(const Entries* const entries, OfRank(rank));
    const auto found = entries->find(name);
    if (found != entries->end()) return found->second;
  }
  return at::Tensor();
}

absl::StatusOr<at::Tensor> SavedRanks::ValueFor(const WalkedState& walked, const std::string& name,
                                                const Communicator& communicator) {
  if (count_ != communicator.size()) {
    const auto difference = walked.differences.find(name);
    if (difference != walked.differences.end()) return Combined(name, difference->second, communicator);
    return Find(name);
  }
  SSL_ASSIGN_OR_RETURN(const Entries* const own, OfRank(communicator.rank()));
  const auto found = own->find(name);
  return found != own->end() ? found->second : Find(name);
}

absl::StatusOr<at::Tensor> SavedRanks::Combined(const std::string& name, const RanksDifference& difference,
                                                const Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const Entries* const rank_zero, OfRank(0));
  std::vector<at::Tensor> values;
  for (int64_t rank = 0; rank < count_; ++rank) {
    SSL_ASSIGN_OR_RETURN(const Entries* const entries, OfRank(rank));
    const auto own = entries->find(name);
    const auto found = own != entries->end() ? own : rank_zero->find(name);
    if (found == rank_zero->end()) continue;
    values.push_back(found->second);
  }
  if (values.empty()) return at::Tensor();
  const bool is_joined = difference.values == RankValues::kJoin;
  for (const at::Tensor& value : values) {
    const bool fits = is_joined ? value.dim() == values[0].dim() : value.sizes() == values[0].sizes();
    if (fits && value.scalar_type() == values[0].scalar_type()) continue;
    return absl::DataLossError(absl::StrCat(name, ": the ranks that saved it do not have it in one type and shape"));
  }
  switch (difference.values) {
    case RankValues::kDealRows:
      return DealRows(name, values, difference.dimension, communicator);
    case RankValues::kSum:
      return Sum(values, communicator);
    case RankValues::kMean:
      return Mean(values);
    case RankValues::kJoin:
      return Join(values, difference.dimension, communicator);
  }
  return at::Tensor();
}

absl::StatusOr<std::vector<NamedTensor>> SavedRanks::LocalState(const WalkedState& walked,
                                                                const Communicator& communicator) {
  std::vector<NamedTensor> state;
  for (const NamedTensor& entry : walked.tensors) {
    SSL_ASSIGN_OR_RETURN(at::Tensor value, ValueFor(walked, entry.name, communicator));
    if (value.defined()) state.push_back({entry.name, std::move(value)});
  }
  return state;
}

// Of all ranks, in the order of the names.
absl::StatusOr<std::vector<NamedTensor>> SavedRanks::NotWalkedHere(const WalkedState& walked) {
  std::set<absl::string_view> walked_names;
  for (const NamedTensor& entry : walked.tensors) walked_names.insert(entry.name);
  std::map<std::string, at::Tensor> others;
  for (int64_t rank = 0; rank < count_; ++rank) {
    SSL_ASSIGN_OR_RETURN(const Entries* const entries, OfRank(rank));
    for (const auto& [name, tensor] : *entries) {
      if (walked_names.count(name) == 0) others.emplace(name, tensor);
    }
  }
  std::vector<NamedTensor> state;
  for (const auto& [name, tensor] : others) state.push_back({name, tensor});
  return state;
}

absl::StatusOr<std::vector<NamedTensor>> SavedRanks::StateOf(const WalkedState& walked, Communicator& communicator) {
  std::vector<NamedTensor> state;
  std::vector<NamedTensor> others;
  const auto read = [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(state, LocalState(walked, communicator));
    if (communicator.rank() != 0) return absl::OkStatus();
    SSL_ASSIGN_OR_RETURN(others, NotWalkedHere(walked));
    return absl::OkStatus();
  };
  // Rank 0 reads the files of all ranks, the others one or two.
  SSL_RETURN_IF_ERROR(AgreeOnWork(read, "reading the states of the ranks", communicator));
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfRankZero(NamesOf(others), communicator));
  if (names.empty()) return state;
  std::set<absl::string_view> walked_names;
  for (const NamedTensor& entry : walked.tensors) walked_names.insert(entry.name);
  at::Tensor is_walked = at::zeros({static_cast<int64_t>(names.size())}, at::kLong);
  for (size_t i = 0; i < names.size(); ++i) is_walked.mutable_data_ptr<int64_t>()[i] = walked_names.count(names[i]);
  SSL_RETURN_IF_ERROR(communicator.AllReduce(is_walked, ReduceOp::kMax));
  for (size_t i = 0; i < others.size(); ++i) {
    if (is_walked.const_data_ptr<int64_t>()[i] == 0) state.push_back(std::move(others[i]));
  }
  return state;
}

std::string SavedRanks::DescribeChange(const WalkedState& walked, const Communicator& communicator) const {
  const auto rank_zero = read_ranks_.find(0);
  if (count_ == communicator.size() || rank_zero == read_ranks_.end()) return "";
  std::map<absl::string_view, std::vector<std::string>> changed;
  for (const auto& [name, difference] : walked.differences) {
    if (rank_zero->second.count(name) > 0) changed[Participle(difference.values)].push_back(name);
  }
  std::string text = absl::StrCat("saved by ", count_, count_ == 1 ? " rank" : " ranks", ", and goes on with ",
                                  communicator.size(), ": ");
  for (const auto& [participle, names] : changed) {
    absl::StrAppend(&text, absl::StrJoin(names, ", "), names.size() == 1 ? " is " : " are ", participle, "; ");
  }
  return absl::StrCat(text, changed.empty() ? "all" : "all else", " is rank 0's");
}

}  // namespace ssl
