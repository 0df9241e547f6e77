// SPDX-License-Identifier: Apache-2.0
//
// How often something happens in the course of training: the one rule for saving, testing and whatever hooks do at
// fixed times. Plain values; pure, thread-safe.
//
//   Cadence{Cadence::Unit::kEpoch, /*every=*/2, /*start=*/5, /*anchor=*/0, /*at_end=*/true}.DueIn(1, 11, 11)
//     -> 6, 8, 10, 11
//
// United Perception counts from anchor 0 (epochs F, 2F, ...), VISSL from anchor 1 (epochs 1, F + 1, ...: the first one
// shows that saving works), and what shall begin with its first epoch has its start as anchor.
#ifndef SSL_CORE_CADENCE_H_
#define SSL_CORE_CADENCE_H_

#include <cstdint>
#include <vector>

namespace ssl {

struct Cadence {
  enum class Unit { kEpoch, kUpdate };

  Unit unit = Unit::kEpoch;  // what is counted: train phases or optimizer updates
  int64_t every = 1;         // below 1: only at the end
  int64_t start = 1;         // not before this many are done
  int64_t anchor = 0;        // due are anchor + k every, k any whole number
  bool at_end = true;        // also when all are done, whatever the others say

  // done: units that are over, from 1; total: those of the whole run.
  bool IsDue(int64_t done, int64_t total) const;

  // All from `first` to `last` that are due, ascending.
  std::vector<int64_t> DueIn(int64_t first, int64_t last, int64_t total) const;
};

}  // namespace ssl

#endif  // SSL_CORE_CADENCE_H_
