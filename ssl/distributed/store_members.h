// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a start say of themselves in the store at which they meet, for rendezvous.h and hearing.h.
// Functions throw what the store throws: it is gone, or does not answer within its timeout.
#ifndef SSL_DISTRIBUTED_STORE_MEMBERS_H_
#define SSL_DISTRIBUTED_STORE_MEMBERS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ssl/distributed/process_identity.h"

namespace c10d {
class Store;
}

namespace ssl {

// How long rank 0 stays, at most, to let the others read why it leaves: its process may be the store. Those that answer
// it have read in milliseconds; on a machine that does other work, in seconds.
inline constexpr absl::Duration kFarewell = absl::Seconds(5);

// What a process says of itself.
struct Introduction {
  int64_t size = 0;  // the number of ranks that it was started for
  ProcessIdentity process;
  std::string name;  // "rank 2 (process 17 on node3)"
};

// A key of each rank.
using RankKey = std::string (*)(int64_t rank);

std::string MemberKey(int64_t rank);  // set by Introduce

void Introduce(int64_t rank, int64_t size, c10d::Store& store);

// Of a rank that has not come: its number alone.
Introduction IntroductionOf(int64_t rank, c10d::Store& store);

// A duration for c10d, which takes 0 for no limit.
std::chrono::milliseconds StoreTimeout(absl::Duration duration);

// False when the keys are not there in time, or the store is gone: then the next operation on it says so. Does not
// throw.
bool AwaitKeys(const std::vector<std::string>& keys, absl::Time deadline, c10d::Store& store);

// Waits, for kFarewell at most, until those of the ranks 1 to size - 1 that have set `said` have set `heard` as well.
void AwaitListeners(RankKey said, RankKey heard, int64_t size, c10d::Store& store);

// "rank 3, rank 5 and 2 others"
std::string Enumerate(const std::vector<std::string>& names);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_STORE_MEMBERS_H_
