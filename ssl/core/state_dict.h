// SPDX-License-Identifier: Apache-2.0
//
// What can be done with a Stateful's walk: collect it as named tensors, put such tensors back, hash it.
//
// Everything becomes a tensor, so that a checkpoint is nothing but safetensors files: an integer is a 0-dim int64,
// a floating point number a 0-dim float64, lists are 1-dim, a text is 1-dim uint8.
#ifndef SSL_CORE_STATE_DICT_H_
#define SSL_CORE_STATE_DICT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/stateful.h"
#include "ssl/io/safetensors.h"

namespace ssl {

// In the order of the walk. Tensors are the live ones, not copies. InvalidArgument when a name occurs twice.
absl::StatusOr<std::vector<NamedTensor>> CollectState(Stateful& root);

// How a value differs between ranks (StateVisitor::RanksDiffer).
struct RanksDifference {
  RankValues values = RankValues::kDealRows;
  int64_t dimension = 0;
};

// CollectState, and what the walk declares of it, by name.
struct WalkedState {
  std::vector<NamedTensor> tensors;
  std::map<std::string, RanksDifference> differences = {};
};
absl::StatusOr<WalkedState> WalkState(Stateful& root);

// CollectState; OutOfRange, naming the first tensors and how many of their values it is, when any is infinite or NaN
// without being declared so (StateVisitor::MayBeNonFinite).
absl::StatusOr<std::vector<NamedTensor>> CollectFiniteState(Stateful& root);

// Puts `state` back. All or nothing: when a name is missing or left over, or a dtype or shape differs, nothing is
// changed, and the InvalidArgument lists every difference; DataLoss, naming tensors, when values are infinite or NaN.
// `origin` (a path) opens the message. Scopes that may differ (StateVisitor::ScopesMayDiffer) and do are named in the
// log, in one line.
absl::Status RestoreState(Stateful& root, const std::vector<NamedTensor>& state, const std::string& origin);

// CRC-32C over names and raw bytes in the order of the walk: equal for bitwise equal states only.
absl::StatusOr<uint32_t> HashState(Stateful& root);

}  // namespace ssl

#endif  // SSL_CORE_STATE_DICT_H_
