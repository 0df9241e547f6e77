// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a start tell each other, in the store at which they met, when an operation has failed.
#ifndef SSL_DISTRIBUTED_HEARING_H_
#define SSL_DISTRIBUTED_HEARING_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace c10d {
class Store;
}

namespace ssl {

// What is known of the others.
struct PeerReport {
  std::string text;    // "rank 2 (process 17 on node3) ended"
  std::string silent;  // processes that neither answer nor have ended for certain: "process 17 on node3, ..."
};

// Of one rank.
struct Hearing {
  int64_t rank;
  int64_t size;
  std::string operation;    // that failed here
  absl::Duration patience;  // how long the others may take to tell of theirs; of a process that is stopped none is
                            // waited for
};

// How long HoldHearing takes at most, but for the farewell of rank 0 and a store that does not answer.
absl::Duration LongestTime(const Hearing& hearing);

// Tells and listens. Throws what the store throws; waits without limit for a store that is stopped. Once for each rank
// and start.
PeerReport HoldHearing(const Hearing& hearing, c10d::Store& store);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_HEARING_H_
