// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/waiting_log.h"

#include "absl/time/clock.h"
#include "ssl/base/log.h"

namespace ssl {
namespace {

// Ranks of one command come within seconds of each other, those of a cluster within minutes.
constexpr absl::Duration kFirst = absl::Seconds(10);
constexpr absl::Duration kPeriod = absl::Minutes(1);

}  // namespace

WaitingLog::WaitingLog(std::string who, absl::Duration limit)
    : who_(std::move(who)), limit_(limit), next_(absl::Now() + kFirst) {}

void WaitingLog::SayIfDue(absl::FunctionRef<std::string()> whom) {
  if (absl::Now() < next_) return;
  SSL_LOG(INFO) << who_ << " for " << whom() << " (gives up after " << absl::FormatDuration(limit_) << ")";
  next_ = absl::Now() + kPeriod;
}

}  // namespace ssl
