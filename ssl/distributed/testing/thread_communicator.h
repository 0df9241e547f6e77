// SPDX-License-Identifier: Apache-2.0
//
// N ranks as N threads of one process: real multi-rank runs in a test.
//
//   ThreadWorld world(2, absl::Seconds(10));
//   ASSERT_OK(world.Run([](Communicator& communicator) { ... return absl::OkStatus(); }));
#ifndef SSL_DISTRIBUTED_TESTING_THREAD_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_TESTING_THREAD_COMMUNICATOR_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

class ThreadWorld {
 public:
  // timeout: how long an operation waits for the other ranks before it returns DeadlineExceeded. Of one that has
  // returned from its function, or destroyed its communicator, it does not wait: Unavailable.
  ThreadWorld(int64_t size, absl::Duration timeout);
  ~ThreadWorld();

  // Runs `rank_main` on every rank at once; returns the error of the lowest failing rank.
  absl::Status Run(const std::function<absl::Status(Communicator&)>& rank_main);

 private:
  class Rendezvous;
  class RankCommunicator;

  std::shared_ptr<Rendezvous> rendezvous_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_TESTING_THREAD_COMMUNICATOR_H_
