// SPDX-License-Identifier: Apache-2.0
//
// Tells people, while a process waits for others, whom it waits for: after 10 s for the first time, then once a minute.
// Used by one thread.
//
//   WaitingLog waiting("rank 0 of 2 waits at gpu1:29500", absl::Minutes(5));
//   while (!Came(waiting.next())) waiting.SayIfDue([] { return "rank 1"; });
#ifndef SSL_DISTRIBUTED_WAITING_LOG_H_
#define SSL_DISTRIBUTED_WAITING_LOG_H_

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace ssl {

class WaitingLog {
 public:
  // who: how each line begins. limit: after which the wait is given up, from now on.
  WaitingLog(std::string who, absl::Duration limit);

  // When the next line is due.
  absl::Time next() const { return next_; }

  // Logs "<who> for <whom()> (gives up after <limit>)", when a line is due.
  void SayIfDue(absl::FunctionRef<std::string()> whom);

 private:
  const std::string who_;
  const absl::Duration limit_;
  absl::Time next_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_WAITING_LOG_H_
