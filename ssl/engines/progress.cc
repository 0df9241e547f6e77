// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/progress.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"

namespace ssl {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(2);

}  // namespace

Progress::Progress(std::string what, int64_t total, Clock& clock)
    : what_(std::move(what)), total_(total), clock_(clock), begin_(clock.Now()), last_line_(begin_) {}

std::string Progress::Update(int64_t done) {
  const absl::Time now = clock_.Now();
  if (done <= 0 || done >= total_ || now - last_line_ < kInterval) return "";
  last_line_ = now;
  const absl::Duration left = (now - begin_) * (static_cast<double>(total_ - done) / static_cast<double>(done));
  const std::string line = absl::StrCat(what_, ": ", 100 * done / total_, "% (", done, " of ", total_, "), ",
                                        absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))), " left");
  SSL_LOG(INFO) << line;
  return line;
}

}  // namespace ssl
