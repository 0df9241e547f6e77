// SPDX-License-Identifier: Apache-2.0
//
// What a clock needs to measure training on a device that works behind the host.
#ifndef SSL_CORE_TRAINING_PAUSE_H_
#define SSL_CORE_TRAINING_PAUSE_H_

#include <c10/core/Device.h>

#include "ssl/core/perf_stats.h"

namespace ssl {

// Returns when the device has done what the current stream of this thread was given; on the CPU at once. May throw
// LibTorch exceptions.
void WaitForDevice(const c10::Device& device);

// The same before a value is read from the device, which would wait without a word: notes the time as kWaitForDevice.
void WaitForDevice(const c10::Device& device, PerfStats* stats);

// While it lives, context.perf_stats.TrainingNow() stands still: for work that is no training, such as a test phase, an
// evaluation or a save. What the device was given before belongs to training, and is waited for. Pauses nest.
//
//   const TrainingPause pause(device, &context.perf_stats);
class TrainingPause {
 public:
  // stats: outlives it.
  TrainingPause(const c10::Device& device, PerfStats* stats);
  ~TrainingPause();
  TrainingPause(const TrainingPause&) = delete;
  TrainingPause& operator=(const TrainingPause&) = delete;

 private:
  PerfStats& stats_;
};

}  // namespace ssl

#endif  // SSL_CORE_TRAINING_PAUSE_H_
