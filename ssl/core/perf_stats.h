// SPDX-License-Identifier: Apache-2.0
//
// How long the parts of a step take, in seconds of the training thread (VISSL's PerfStats). On a GPU the times are
// those of handing out work, not of doing it: how long training takes there, the clock alone tells (TrainingNow).
// Used by the training thread only.
//
// No time counts twice: what a part waits for other ranks is not its own but kWaitForRanks', whatever it waits in (a
// loss that gathers, batch norm over ranks, the turn of a virtual rank). A timer within another one takes its time out
// of that one. kStepTotal has all of it.
//
//   const PerfTimer timer(&context.perf_stats, StepPart::kForward);   // until the end of the block
//
// The times of a run only grow. Who wants those of a phase, or since a report, keeps a copy of its beginning:
//
//   const PerfStats window = context.perf_stats.Since(begin_);
//
// TrainingNow is a clock that stands still in test phases, evaluations and saves (training_pause.h): speeds are those
// of the steps between two of its times, each taken when the device had done what it was given.
#ifndef SSL_CORE_PERF_STATS_H_
#define SSL_CORE_PERF_STATS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "ssl/base/clock.h"

namespace ssl {

// Rows of the table, in this order.
enum class StepPart {
  kReadSample,  // until the source of batches has the next one
  kForward,
  kLossCompute,
  kMetersUpdate,
  kBackward,
  kReduceGradients,
  kOptimizerStep,
  // In the call for a batch: until the device needs memory of earlier batches no longer, and to start the copy.
  kWaitForDevice,
  kWaitForRanks,  // in operations between ranks: until the others take part, and what the exchange itself takes
  kStepTotal,
};
inline constexpr int kNumStepParts = 10;

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

  // Instead of the machine's clock, for tests; it outlives this and its copies.
  void UseClock(Clock& clock) { clock_ = &clock; }
  absl::Time Now() const { return clock_->Now(); }
  // Differences are times of training: what lay in pauses is left out, and in a pause this stands still.
  absl::Time TrainingNow() const { return (pauses_ > 0 ? pause_begin_ : Now()) - paused_; }

  // What was added after the copy `earlier` was made.
  PerfStats Since(const PerfStats& earlier) const;

  int64_t steps() const { return counts_[static_cast<size_t>(StepPart::kStepTotal)]; }
  double Seconds(StepPart part) const { return seconds_[static_cast<size_t>(part)]; }
  // Mean milliseconds; 0 when the part has not run.
  double MeanMs(StepPart part) const;

  // One line for each part that has run: name, mean milliseconds, share of the whole step.
  std::string Table() const;

 private:
  friend class PerfTimer;
  friend class TrainingPause;

  std::array<double, kNumStepParts> seconds_ = {};
  std::array<int64_t, kNumStepParts> counts_ = {};
  const WaitingTime* waiting_ = nullptr;
  double timed_ = 0.0;  // by all timers
  Clock* clock_ = &Clock::Real();
  int64_t pauses_ = 0;  // in progress, one within the other
  absl::Time pause_begin_;
  absl::Duration paused_;  // in those that are over
};

// Adds the time of its block, without that of timers within it and what it waits for other ranks.
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
  const double not_own_;  // what others than this timer had counted before
};

}  // namespace ssl

#endif  // SSL_CORE_PERF_STATS_H_
