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

// "features of train: 40% (24000 of 60000), 6s left". At most one line every two seconds. Used by one thread.
class Progress {
 public:
  // The clock outlives it.
  Progress(std::string what, int64_t total, Clock& clock);

  // `done` of the total are finished now. Returns the line when one is due and logs it; "" otherwise.
  std::string Update(int64_t done);

 private:
  const std::string what_;
  const int64_t total_;
  Clock& clock_;
  const absl::Time begin_;
  absl::Time last_line_;
};

}  // namespace ssl

#endif  // SSL_ENGINES_PROGRESS_H_
