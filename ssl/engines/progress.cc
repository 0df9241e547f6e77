// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/progress.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/hooks/progress_line.h"

namespace ssl {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(2);
// So many of the total since the first call, or this share of it, tell how long the rest takes.
constexpr int64_t kSamples = 10;
constexpr double kShare = 0.02;

}  // namespace

Progress::Progress(std::string what, int64_t total, Clock& clock)
    : what_(std::move(what)), total_(total), clock_(clock), last_line_(clock.Now()) {}

std::string Progress::Update(int64_t done) {
  const absl::Time now = clock_.Now();
  if (first_done_ < 0) {
    first_done_ = done;
    first_time_ = now;
  }
  if (done <= 0 || done >= total_ || now - last_line_ < kInterval) return "";
  last_line_ = now;
  const std::string line =
      absl::StrCat(what_, ": ", 100 * done / total_, "% (", done, " of ", total_, ")", TimeLeft(done, now));
  SSL_LOG(INFO) << line;
  return line;
}

std::string Progress::TimeLeft(int64_t done, absl::Time now) const {
  const int64_t measured = done - first_done_;
  if (measured < kSamples && static_cast<double>(measured) < kShare * static_cast<double>(total_)) return "";
  const absl::Duration left =
      (now - first_time_) * (static_cast<double>(total_ - done) / static_cast<double>(measured));
  return absl::StrCat(", ", FormatDuration(std::ceil(absl::ToDoubleSeconds(left))), " left");
}

}  // namespace ssl
