// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/scan_progress.h"

#include <utility>

#include "ssl/base/log.h"

namespace ssl {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(2);

}  // namespace

ScanProgress::ScanProgress(std::string path, Clock& clock)
    : path_(std::move(path)), clock_(clock), last_(clock.Now()) {}

void ScanProgress::Report(absl::FunctionRef<std::string()> done) {
  const absl::Time now = clock_.Now();
  if (now - last_ < kInterval) return;
  last_ = now;
  SSL_LOG(INFO) << path_ << ": " << done() << kSoFar;
}

}  // namespace ssl
