// SPDX-License-Identifier: Apache-2.0
//
// Work that one rank does while another waits, for longer than an operation may take.
//
//   LongWork work;
//   ThreadWorld(2, LongWork::kTimeout).Run([&](Communicator& base) {
//     CountingCommunicator counting(base, &work.counts());
//     Communicator& communicator = base.rank() == 1 ? counting : base;
//     const absl::Status status = AgreeOnWork([&] { return work.Do(communicator); }, "working", communicator);
//     work.End(communicator);
//     return status;
//   });
//   EXPECT_GE(work.met(), LongWork::kMeetings);
#ifndef SSL_DISTRIBUTED_TESTING_LONG_WORK_H_
#define SSL_DISTRIBUTED_TESTING_LONG_WORK_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"

namespace ssl {

class LongWork {
 public:
  static constexpr int64_t kMeetings = 8;  // a quarter of a second each
  static constexpr absl::Duration kTimeout = absl::Seconds(1);

  // Of rank 0, until rank 1 has begun so many operations, or has given up. Nothing on other ranks.
  absl::Status Do(const Communicator& communicator) {
    if (communicator.rank() != 0) return absl::OkStatus();
    counts_.Take();
    while (met_ < kMeetings && !is_over_) met_ += Operations();
    return absl::OkStatus();
  }

  // On rank 1, behind what it has waited in, whatever came of it.
  void End(const Communicator& communicator) {
    if (communicator.rank() == 1) is_over_ = true;
  }

  CollectiveCounts& counts() { return counts_; }  // of rank 1
  int64_t met() const { return met_; }

 private:
  int64_t Operations() {
    int64_t sum = 0;
    for (const auto& [kind, count] : counts_.Take()) sum += count;
    return sum;
  }

  CollectiveCounts counts_;
  std::atomic<bool> is_over_{false};
  std::atomic<int64_t> met_{0};
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_TESTING_LONG_WORK_H_
