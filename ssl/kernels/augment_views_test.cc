// SPDX-License-Identifier: Apache-2.0
//
// Packed images and plans on the CPU and on the stand-in device, against one thread that runs the arithmetic. That
// this is what the transforms make: ssl/data/transforms/draw_view_plan_test.cc.
#include "ssl/kernels/augment_views.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/kernels/team.h"
#include "ssl/kernels/view_plan.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::IsEmpty;

constexpr int kViews = 5;
constexpr int64_t kFloats = 3 * (8 * 6 * 3 + 4 * 4 * 2);
const ViewNormalization kNormalization = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

// Colours of an image of 20 x 24 and greys of one of 11 x 9.
std::vector<uint8_t> Pixels() {
  std::vector<uint8_t> pixels(20 * 24 * 3 + 11 * 9);
  uint32_t state = 1;
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return pixels;
}

std::vector<ViewPlan> Plans() {
  std::vector<ViewPlan> plans(kViews);
  int64_t begin = 0;
  for (int v = 0; v < kViews; ++v) {
    ViewPlan& plan = plans[v];
    const bool is_grey = v == 4;
    plan.source_channels = is_grey ? 1 : 3;
    plan.source_stride = is_grey ? 9 : 24 * 3;
    plan.source_begin = is_grey ? 20 * 24 * 3 : 3 * v + 72 * v;
    const int height = is_grey ? 11 : 12 + v, width = is_grey ? 9 : 15;
    plan.rows = {height, v < 3 ? 8 : 4, 0, height, 1};
    plan.columns = {width, v < 3 ? 6 : 4, 0, width, 1};
    plan.rows_first = v % 2 == 0;
    plan.flipped = v == 1;
    plan.num_steps = v % 3;
    plan.steps[0].kind = PixelStepKind::kContrast;
    plan.steps[0].factor = 0.7f;
    plan.result_begin = begin;
    begin += 3 * plan.num_pixels();
  }
  return plans;
}

at::Tensor BytesOf(const void* bytes, size_t size) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(size)}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes, size);
  return tensor;
}

std::vector<float> ByOneThread() {
  const std::vector<uint8_t> pixels = Pixels();
  std::vector<float> result(kFloats);
  for (const ViewPlan& plan : Plans()) {
    std::vector<uint8_t> work(ViewWorkBytes(plan));
    RunResizePass(FirstPass(plan, pixels.data(), work.data()), 0, 1);
    ViewAugmenter<OneThread>(OneThread(), plan, work.data()).Run(kNormalization, result.data() + plan.result_begin);
  }
  return result;
}

std::vector<float> On(const c10::Device& device) {
  const std::vector<uint8_t> pixels = Pixels();
  const std::vector<ViewPlan> plans = Plans();
  const at::Tensor images = BytesOf(pixels.data(), pixels.size()).to(device);
  at::Tensor result = at::full({kFloats}, -1.0, at::TensorOptions().device(device));
  EXPECT_OK(AugmentViews(BytesOf(plans.data(), plans.size() * sizeof(ViewPlan)), images, kNormalization, &result));
  const at::Tensor here = result.cpu();
  const float* floats = here.const_data_ptr<float>();
  return std::vector<float>(floats, floats + kFloats);
}

TEST(AugmentViews, OnTheCpu_AreThoseOfOneThread) { EXPECT_EQ(On(c10::kCPU), ByOneThread()); }

TEST(AugmentViews, OnADeviceWithoutKernels_AreThoseOfOneThread) {
  StandinDevice::Install();
  EXPECT_EQ(On(StandinDevice::device()), ByOneThread());
}

TEST(AugmentViews, OnADevice_ReadNothing) {
  StandinDevice::Install();
  const std::vector<uint8_t> pixels = Pixels();
  const std::vector<ViewPlan> plans = Plans();
  const at::Tensor images = BytesOf(pixels.data(), pixels.size()).to(StandinDevice::device());
  at::Tensor result = at::empty({kFloats}, at::TensorOptions().device(StandinDevice::device()));
  const TransferLog log;
  EXPECT_OK(AugmentViews(BytesOf(plans.data(), plans.size() * sizeof(ViewPlan)), images, kNormalization, &result));
  EXPECT_THAT(log.reads(), IsEmpty());
}

}  // namespace
}  // namespace ssl
