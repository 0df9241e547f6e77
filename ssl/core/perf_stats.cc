// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/perf_stats.h"

#include "absl/strings/str_format.h"

namespace ssl {
namespace {

constexpr std::array<const char*, kNumStepParts> kNames = {
    "read_sample",      "forward",        "loss_compute",    "meters_update",  "backward",
    "reduce_gradients", "optimizer_step", "wait_for_device", "wait_for_ranks", "step_total"};

}  // namespace

void PerfStats::Add(StepPart part, double seconds) {
  seconds_[static_cast<size_t>(part)] += seconds;
  ++counts_[static_cast<size_t>(part)];
}

PerfStats PerfStats::Since(const PerfStats& earlier) const {
  PerfStats since = *this;
  for (size_t i = 0; i < seconds_.size(); ++i) {
    since.seconds_[i] -= earlier.seconds_[i];
    since.counts_[i] -= earlier.counts_[i];
  }
  return since;
}

double PerfStats::MeanMs(StepPart part) const {
  const size_t i = static_cast<size_t>(part);
  return counts_[i] > 0 ? 1e3 * seconds_[i] / static_cast<double>(counts_[i]) : 0.0;
}

std::string PerfStats::Table() const {
  const double total = seconds_[static_cast<size_t>(StepPart::kStepTotal)];
  std::string table;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (counts_[i] == 0) continue;
    const double share = total > 0.0 ? 100.0 * seconds_[i] / total : 0.0;
    absl::StrAppendFormat(&table, "%-17s %9.2f ms %5.1f %%\n", kNames[i], MeanMs(static_cast<StepPart>(i)), share);
  }
  return table;
}

PerfTimer::PerfTimer(PerfStats* stats, StepPart part)
    : stats_(stats), part_(part), begin_(stats->Now()), not_own_(stats->SecondsWaited() + stats->timed_) {}

PerfTimer::~PerfTimer() {
  const double not_own = stats_->SecondsWaited() + stats_->timed_ - not_own_;
  const double own = absl::ToDoubleSeconds(stats_->Now() - begin_) - not_own;
  stats_->Add(part_, own);
  stats_->timed_ += own;
}

}  // namespace ssl
