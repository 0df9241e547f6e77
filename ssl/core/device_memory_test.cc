// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/device_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/torch_guard.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// That of a device whose tensors took 2.5 GiB at most.
struct FullMemory final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t) override { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory"); }
  void copy_data(void*, const void*, size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].increase(size_t{5} << 29);
    stats.allocated_bytes[0].decrease(size_t{1} << 29);
    return stats;
  }
};

absl::Status Exhausted() {
  return GuardTorch("forward", []() -> absl::Status {
    (void)c10::GetAllocator(c10::DeviceType::PrivateUse1)->allocate(1);
    return absl::OkStatus();
  });
}

TEST(WithMemoryAdviceTest, ExhaustedDevice_SaysThePeakAndWhatToLower) {
  static FullMemory memory;
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &memory);
  const absl::Status status = WithMemoryAdvice(Exhausted(), c10::Device(c10::DeviceType::PrivateUse1, 0));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(StartsWith("forward: CUDA out of memory"), HasSubstr("at most 2.50 GiB"),
                                     HasSubstr("config.DATA.TRAIN.BATCHSIZE_PER_REPLICA"), HasSubstr("USE_AMP=True"),
                                     HasSubstr("USE_ACTIVATION_CHECKPOINTING=True"))));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
  EXPECT_EQ(DetailOf(status, kDetailMemory), kMemoryOfDevice);
  EXPECT_EQ(DetailOf(status, kDetailException), "c10::OutOfMemoryError");
  EXPECT_EQ(WithMemoryAdvice(status, c10::Device(c10::DeviceType::PrivateUse1, 0)), status) << "once is enough";
  const std::string uncounted(WithMemoryAdvice(Exhausted(), c10::Device(c10::kCPU)).message());
  EXPECT_THAT(uncounted, AllOf(HasSubstr("BATCHSIZE_PER_REPLICA"), Not(HasSubstr("GiB"))));
}

TEST(WithMemoryAdviceTest, OtherErrorsStayAsTheyAre) {
  const c10::Device cpu(c10::kCPU);
  EXPECT_OK(WithMemoryAdvice(absl::OkStatus(), cpu));
  const absl::Status of_host = WithDetail(absl::ResourceExhaustedError("no memory"), kDetailCause, kCauseMemory);
  EXPECT_EQ(WithMemoryAdvice(of_host, cpu), of_host);
}

}  // namespace
}  // namespace ssl
