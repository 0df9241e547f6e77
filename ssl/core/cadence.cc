// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/cadence.h"

namespace ssl {

bool Cadence::IsDue(int64_t done, int64_t total) const {
  if (at_end && done == total) return true;
  return every > 0 && done >= start && (done - anchor) % every == 0;
}

std::vector<int64_t> Cadence::DueIn(int64_t first, int64_t last, int64_t total) const {
  std::vector<int64_t> due;
  for (int64_t done = first; done <= last; ++done) {
    if (IsDue(done, total)) due.push_back(done);
  }
  return due;
}

}  // namespace ssl
