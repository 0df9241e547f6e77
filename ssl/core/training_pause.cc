// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/training_pause.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace ssl {

void WaitForDevice(const c10::Device& device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

void WaitForDevice(const c10::Device& device, PerfStats* stats) {
  if (device.is_cpu()) return;
  const PerfTimer timer(stats, StepPart::kWaitForDevice);
  WaitForDevice(device);
}

TrainingPause::TrainingPause(const c10::Device& device, PerfStats* stats) : stats_(*stats) {
  if (stats_.pauses_ == 0) {
    WaitForDevice(device, stats);
    stats_.pause_begin_ = stats_.Now();
  }
  ++stats_.pauses_;
}

TrainingPause::~TrainingPause() {
  if (--stats_.pauses_ == 0) stats_.paused_ += stats_.Now() - stats_.pause_begin_;
}

}  // namespace ssl
