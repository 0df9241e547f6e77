// SPDX-License-Identifier: Apache-2.0
//
// N ranks as N processes, connected by Gloo over this machine's loopback interface.
//
//   TEST(MyTest, RanksAgree) {
//     EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) { ... return absl::OkStatus(); }));
//   }
//
// Each rank is this test program, started anew for the running test alone: the test's body runs once more in every
// process, where Run calls `rank_main` as that rank. So all of a body but Run's argument is for all processes alike,
// and a test calls one of the functions below, once. A process started anew, rather than a fork, has LibTorch's
// threads. Failures of expectations in a rank fail the test, with what the rank has printed.
#ifndef SSL_DISTRIBUTED_TESTING_PROCESS_WORLD_H_
#define SSL_DISTRIBUTED_TESTING_PROCESS_WORLD_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/gloo_communicator.h"

namespace ssl {

class ProcessWorld {
 public:
  // timeout: of operations.
  explicit ProcessWorld(int64_t size, absl::Duration timeout = absl::Seconds(60)) : size_(size), timeout_(timeout) {}

  // In the test's own process: returns the error of the lowest failing rank, once all have ended; Unavailable for one
  // that was killed. A rank that stops itself (SIGSTOP) is killed when the others have ended. In a rank's process:
  // returns what rank_main has returned.
  absl::Status Run(const std::function<absl::Status(Communicator&)>& rank_main) const;

  // The same before a communicator is made: `options` is ready for MakeGlooCommunicator.
  absl::Status RunWithOptions(const std::function<absl::Status(GlooOptions options)>& rank_main) const;

 private:
  const int64_t size_;
  const absl::Duration timeout_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_TESTING_PROCESS_WORLD_H_
