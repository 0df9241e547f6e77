// SPDX-License-Identifier: Apache-2.0
//
// Of a build with CUDA, on a machine with a GPU or without.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/accelerator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(CudaAcceleratorTest, MoreGpusThanAnyHostHas_AreRefused) {
  EXPECT_OK(CheckAcceleratorIsBuilt());
  const absl::Status refused = Accelerator(1000).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("GPU"));
}

}  // namespace
}  // namespace ssl
