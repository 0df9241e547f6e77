// SPDX-License-Identifier: Apache-2.0
//
// Views that the kernels make, against the transforms on the host with the same random numbers.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/transforms/testing/planned_views.h"
#include "ssl/kernels/augment_by_kernel.h"
#include "ssl/kernels/view_plan.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

at::Tensor Bytes(const void* data, size_t size) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(size)}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), data, size);
  return bytes;
}

at::Tensor PlansOf(const std::vector<ViewPlan>& plans) { return Bytes(plans.data(), plans.size() * sizeof(ViewPlan)); }

TEST(AugmentGpu, Views_DifferByTwoLevelsAtMost) {
  ASSERT_OK_AND_ASSIGN(PlannedViews views, PlanViews(ImagesToPlan(), 12));
  const at::Tensor images = Bytes(views.images.data(), views.images.size());
  at::Tensor result = at::empty({static_cast<int64_t>(views.expected.size())}, at::TensorOptions().device(at::kCUDA));
  ASSERT_TRUE(HasAugmentKernel(result.device()));
  ASSERT_OK(AugmentByKernel(PlansOf(views.plans), images.to(at::kCUDA), views.normalization, &result));
  const at::Tensor on_host = result.cpu();
  const float* actual = on_host.const_data_ptr<float>();
  for (size_t i = 0; i < views.expected.size(); ++i) {
    const float levels = std::abs(actual[i] - views.expected[i]) * views.normalization.std[i % 3] * 255.0f;
    ASSERT_LE(levels, 2.01f) << "value " << i;
  }
}

// More than a grid of blocks has in its second direction.
TEST(AugmentGpu, ManyViews_AreAllMade) {
  constexpr int kViews = 70000;
  std::vector<ViewPlan> plans(kViews);
  for (int v = 0; v < kViews; ++v) {
    plans[v].source_begin = 3 * (v % 100);
    plans[v].source_stride = 3;
    plans[v].rows = plans[v].columns = {1, 1, 0, 1, 1};
    plans[v].result_begin = 3 * v;
  }
  std::vector<uint8_t> pixels(300);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i % 251);
  at::Tensor result = at::empty({3 * kViews}, at::TensorOptions().device(at::kCUDA));
  const ViewNormalization none = {{0.0f, 0.0f, 0.0f}, {1.0f, 1.0f, 1.0f}};
  ASSERT_OK(AugmentByKernel(PlansOf(plans), Bytes(pixels.data(), pixels.size()).to(at::kCUDA), none, &result));
  const at::Tensor on_host = result.cpu();
  for (int i = 0; i < 3 * kViews; ++i) {
    const float expected = static_cast<float>(pixels[i / 3 % 100 * 3 + i % 3]) / 255.0f;
    ASSERT_NEAR(on_host.const_data_ptr<float>()[i], expected, 1e-6) << "value " << i;
  }
}

}  // namespace
}  // namespace ssl
