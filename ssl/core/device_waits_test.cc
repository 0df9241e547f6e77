// SPDX-License-Identifier: Apache-2.0
//
// What the host waits for in its call for a batch: the source, or a device that is late.
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/testing/manual_clock.h"
#include "ssl/core/batch.h"
#include "ssl/core/device_batch_source.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/pinned_memory.h"
#include "ssl/core/read_ahead.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_streams.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// Takes a minute for each batch, and has the next one ready.
class SlowSource : public BatchSource, public ReadAhead {
 public:
  explicit SlowSource(ManualClock* clock) : clock_(*clock) {
    for (Batch& batch : ring_) {
      batch.views = {EmptyPinned({4, 3, 2, 2}, at::kFloat, at::MemoryFormat::Contiguous, StandinDevice::device())};
    }
  }

  int64_t batches_per_epoch() const override { return 9; }
  int64_t dataset_size() const override { return 36; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override {
    clock_.Advance(absl::Minutes(1));
    return &ring_[next_++ % ring_.size()];
  }
  absl::Status PrepareFor(const c10::Device& device) override { return absl::OkStatus(); }
  const Batch* Following() override { return &ring_[next_ % ring_.size()]; }

 private:
  ManualClock& clock_;
  std::array<Batch, 3> ring_;
  size_t next_ = 0;
};

TEST(DeviceWaitsTest, WaitingForTheDevice_IsApartFromThatForTheSource) {
  constexpr int kBatches = 4;
  StandinDevice::Install();
  ManualClock clock;
  const LateStandin late(&clock, absl::Seconds(1));
  PerfStats stats;
  stats.UseClock(clock);
  SlowSource source(&clock);
  DeviceBatchSource on_device(source, StandinDevice::device(), [](const at::Tensor&) { return absl::OkStatus(); });
  on_device.Measure(&stats);
  ASSERT_OK(on_device.StartEpoch(0, 0));
  const absl::Time begin = clock.Now();
  for (int batch = 0; batch < kBatches; ++batch) {
    ASSERT_OK(on_device.Next().status());
    KeepStandinBusy(1000);  // a step
  }
  EXPECT_EQ(absl::Seconds(stats.Seconds(StepPart::kReadSample)), kBatches * absl::Minutes(1));
  const absl::Duration waited = clock.Now() - begin - kBatches * absl::Minutes(1);
  EXPECT_GE(waited, absl::Seconds(800)) << "the memory of the second batch is free behind the first step";
  EXPECT_LE(absl::AbsDuration(absl::Seconds(stats.Seconds(StepPart::kWaitForDevice)) - waited), absl::Microseconds(1));
}

}  // namespace
}  // namespace ssl
