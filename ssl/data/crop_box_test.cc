// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/crop_box.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

Interval IntervalOf(const golden::Case& golden_case, const char* name) {
  const std::vector<double> pair = ToDoubles(*golden_case.params.Find(name));
  return {pair[0], pair[1]};
}

struct Moments {
  double area = 0.0;
  double area_square = 0.0;
  double log_aspect = 0.0;
  double log_aspect_square = 0.0;
};

// Means over many draws, of the area's fraction and of log(width / height).
Moments MeasureMoments(const golden::Case& golden_case, int draws) {
  const int height = static_cast<int>(golden_case.Int("height"));
  const int width = static_cast<int>(golden_case.Int("width"));
  Moments moments;
  for (int i = 0; i < draws; ++i) {
    CounterRandom random(7, 0, i, 0, 0);
    const CropBox box =
        DrawCropBox(random, height, width, IntervalOf(golden_case, "scale"), IntervalOf(golden_case, "ratio"));
    const double area = static_cast<double>(box.height) * box.width / (static_cast<double>(height) * width);
    const double log_aspect = std::log(static_cast<double>(box.width) / box.height);
    moments.area += area / draws;
    moments.area_square += area * area / draws;
    moments.log_aspect += log_aspect / draws;
    moments.log_aspect_square += log_aspect * log_aspect / draws;
  }
  return moments;
}

TEST(CropBoxGolden, StatisticsAreThoseOfTorchvision) {
  for (const golden::Case& golden_case : GoldenCases("crop_boxes", "rrc_statistics")) {
    SCOPED_TRACE(golden_case.name);
    const auto& expected = golden_case.steps[0].outputs;
    const Moments moments = MeasureMoments(golden_case, 20000);
    // Both sides are estimates: the difference of two has sqrt(2) standard errors; 5 of them are never reached.
    const double area_error = 5.0 * std::sqrt(2.0) * expected.at("standard_error_area").f64 + 1e-9;
    const double aspect_error = 5.0 * std::sqrt(2.0) * expected.at("standard_error_log_aspect").f64 + 1e-9;
    EXPECT_NEAR(moments.area, expected.at("area_mean").f64, area_error);
    EXPECT_NEAR(moments.log_aspect, expected.at("log_aspect_mean").f64, aspect_error);
    EXPECT_NEAR(std::sqrt(std::max(0.0, moments.area_square - moments.area * moments.area)),
                expected.at("area_std").f64, 0.01);
    EXPECT_NEAR(std::sqrt(std::max(0.0, moments.log_aspect_square - moments.log_aspect * moments.log_aspect)),
                expected.at("log_aspect_std").f64, 0.01);
  }
}

TEST(CropBoxGolden, NothingFits_IsTheCentredBoxOfTorchvision) {
  for (const golden::Case& golden_case : GoldenCases("crop_boxes", "rrc_boxes")) {
    if (golden_case.Int("width") != 300) continue;  // the other cases are random
    SCOPED_TRACE(golden_case.name);
    const std::vector<int64_t> expected = ToInts(golden_case.steps[0].outputs.at("boxes").value.items()[0]);
    CounterRandom random(0, 0, 0, 0, 0);
    const CropBox box = DrawCropBox(random, static_cast<int>(golden_case.Int("height")), 300,
                                    IntervalOf(golden_case, "scale"), IntervalOf(golden_case, "ratio"));
    EXPECT_EQ((std::vector<int64_t>{box.top, box.left, box.height, box.width}), expected);
  }
}

TEST(CropBox, TallPicture_IsCutToTheSmallestRatio) {
  CounterRandom random(0, 0, 0, 0, 0);

  const CropBox box = DrawCropBox(random, 300, 60, {0.9, 1.0}, {0.75, 4.0 / 3.0});

  EXPECT_EQ(box.height, 80);  // 60 / 0.75
  EXPECT_EQ(box.width, 60);
  EXPECT_EQ(box.top, 110);
  EXPECT_EQ(box.left, 0);
}

TEST(CropBox, AnyShapeAndRule_LiesInsideThePicture) {
  const std::vector<std::tuple<Interval, Interval>> rules = {
      {{0.08, 1.0}, {0.75, 1.33}}, {{1e-9, 1e-9}, {1.0, 1.0}}, {{1.0, 1.0}, {0.001, 1000.0}}, {{0.5, 0.5}, {900, 900}}};
  for (int height : {1, 2, 3, 28, 1000}) {
    for (int width : {1, 2, 5, 28, 4000}) {
      for (const auto& [scale, ratio] : rules) {
        for (int i = 0; i < 50; ++i) {
          CounterRandom random(1, 2, i, 3, 4);
          const CropBox box = DrawCropBox(random, height, width, scale, ratio);
          ASSERT_GE(box.height, 1);
          ASSERT_GE(box.width, 1);
          ASSERT_GE(box.top, 0);
          ASSERT_GE(box.left, 0);
          ASSERT_LE(box.top + box.height, height);
          ASSERT_LE(box.left + box.width, width);
        }
      }
    }
  }
}

TEST(CropBox, EveryPositionIsReached) {
  std::set<std::pair<int, int>> corners;
  for (int i = 0; i < 2000; ++i) {
    CounterRandom random(0, 0, i, 0, 0);
    const CropBox box = DrawCropBox(random, 4, 4, {0.25, 0.25}, {1.0, 1.0});
    ASSERT_EQ(box.height, 2);
    ASSERT_EQ(box.width, 2);
    corners.insert({box.top, box.left});
  }
  EXPECT_EQ(corners.size(), 9u);
}

}  // namespace
}  // namespace ssl
