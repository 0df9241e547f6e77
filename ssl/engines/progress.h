// SPDX-License-Identifier: Apache-2.0
//
// Progress of work that takes more than two seconds, as log lines with an estimate of the time left.
#ifndef SSL_ENGINES_PROGRESS_H_
#define SSL_ENGINES_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "ssl/base/clock.h"

namespace ssl {

// "features of train: 40% (24000 of 60000), 6s left". At most one line every two seconds, with the time that is left as
// soon as the work since the first call of Update says it: what came before, such as opening the data, is no measure.
// Used by one thread.
class Progress {
 public:
  // The clock outlives it.
  Progress(std::string what, int64_t total, Clock& clock);

  // `done` of the total are finished now. Returns the line when one is due and logs it; "" otherwise.
  std::string Update(int64_t done);

 private:
  std::string TimeLeft(int64_t done, absl::Time now) const;

  const std::string what_;
  const int64_t total_;
  Clock& clock_;
  absl::Time last_line_;
  int64_t first_done_ = -1;  // at the first call; -1: there was none
  absl::Time first_time_;
};

}  // namespace ssl

#endif  // SSL_ENGINES_PROGRESS_H_
