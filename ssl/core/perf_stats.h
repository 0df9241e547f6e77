// SPDX-License-Identifier: Apache-2.0
//
// How long the parts of a step take, in seconds of the training thread (VISSL's PerfStats). On a GPU the times are
// those of handing out work, not of doing it. Used by the training thread only.
//
// No time counts twice: what a part waits for other ranks is not its own but kWaitForRanks', whatever it waits in (a
// loss that gathers, batch norm over ranks, the turn of a virtual rank). kStepTotal has all of it.
//
//   const PerfTimer timer(&context.perf_stats, StepPart::kForward);   // until the end of the block
//
// The times of a run only grow. Who wants those of a phase, or since a report, keeps a copy of its beginning:
//
//   const PerfStats window = context.perf_stats.Since(begin_);
#ifndef SSL_CORE_PERF_STATS_H_
#define SSL_CORE_PERF_STATS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace ssl {

// Rows of the table, in this order.
enum class StepPart {
  kReadSample,
  kForward,
  kLossCompute,
  kMetersUpdate,
  kBackward,
  kReduceGradients,
  kOptimizerStep,
  kWaitForRanks,  // in operations between ranks: until the others take part, and what the exchange itself takes
  kStepTotal,
};
inline constexpr int kNumStepParts = 9;

// How long a rank has waited for others, in all its life (timed_communicator.h). Thread-safe: the backward pass of a
// GPU waits on a thread of LibTorch's.
class WaitingTime {
 public:
  void Add(absl::Duration duration) { nanoseconds_ += absl::ToInt64Nanoseconds(duration); }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_); }

 private:
  std::atomic<int64_t> nanoseconds_{0};
};

class PerfStats {
 public:
  void Add(StepPart part, double seconds);

  // From here on timers leave out what `waiting` grows by meanwhile; it outlives this and its copies.
  void LeaveOut(const WaitingTime& waiting) { waiting_ = &waiting; }
  // So far, in steps and between them.
  double SecondsWaited() const { return waiting_ != nullptr ? waiting_->seconds() : 0.0; }

  // What was added after the copy `earlier` was made.
  PerfStats Since(const PerfStats& earlier) const;

  int64_t steps() const { return counts_[static_cast<size_t>(StepPart::kStepTotal)]; }
  double Seconds(StepPart part) const { return seconds_[static_cast<size_t>(part)]; }
  // Mean milliseconds; 0 when the part has not run.
  double MeanMs(StepPart part) const;

  // One line for each part that has run: name, mean milliseconds, share of the whole step.
  std::string Table() const;

 private:
  std::array<double, kNumStepParts> seconds_ = {};
  std::array<int64_t, kNumStepParts> counts_ = {};
  const WaitingTime* waiting_ = nullptr;
};

// Adds the time of its block, without what it waits for other ranks.
class PerfTimer {
 public:
  PerfTimer(PerfStats* stats, StepPart part);
  ~PerfTimer();
  PerfTimer(const PerfTimer&) = delete;
  PerfTimer& operator=(const PerfTimer&) = delete;

 private:
  PerfStats* const stats_;
  const StepPart part_;
  const absl::Time begin_;
  const double waited_;
};

}  // namespace ssl

#endif  // SSL_CORE_PERF_STATS_H_
