// SPDX-License-Identifier: Apache-2.0
//
// Views that the kernels make, against the transforms on the host with the same random numbers.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "ssl/data/transforms/testing/planned_views.h"
#include "ssl/kernels/augment_by_kernel.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(AugmentGpu, Views_DifferByTwoLevelsAtMost) {
  ASSERT_OK_AND_ASSIGN(PlannedViews views, PlanViews(ImagesToPlan(), 12));
  at::Tensor images = at::empty({static_cast<int64_t>(views.images.size())}, at::kByte);
  std::copy(views.images.begin(), views.images.end(), images.mutable_data_ptr<uint8_t>());
  at::Tensor result = at::empty({static_cast<int64_t>(views.expected.size())}, at::TensorOptions().device(at::kCUDA));
  ASSERT_TRUE(HasAugmentKernel(result.device()));
  ASSERT_OK(AugmentByKernel(absl::MakeSpan(views.plans), images.to(at::kCUDA), views.normalization, &result));
  const at::Tensor on_host = result.cpu();
  const float* actual = on_host.const_data_ptr<float>();
  float largest = 0.0f;  // in levels
  for (size_t i = 0; i < views.expected.size(); ++i) {
    largest = std::max(largest, std::abs(actual[i] - views.expected[i]) * views.normalization.std[i % 3] * 255.0f);
  }
  EXPECT_LE(largest, 2.01f);
}

}  // namespace
}  // namespace ssl
