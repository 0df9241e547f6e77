// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/crop_box.h"

#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

Interval IntervalOf(const golden::Case& golden_case, const char* name) {
  const std::vector<double> pair = golden_case.Doubles(name, 2);
  if (!(pair[0] > 0.0 && pair[0] <= pair[1]))
    throw std::invalid_argument("an interval has no positive, increasing ends");
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
  const int height = static_cast<int>(golden_case.Count("height"));
  const int width = static_cast<int>(golden_case.Count("width"));
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
  RunGolden("crop_boxes", "rrc_statistics", [&](const golden::Case& golden_case) {
    const golden::Step& expected = golden_case.steps[0];
    const Moments moments = MeasureMoments(golden_case, 20000);
    // Both sides are estimates: the difference of two has sqrt(2) standard errors; 5 of them are never reached.
    const double area_error = 5.0 * std::sqrt(2.0) * expected.Expected("standard_error_area").f64 + 1e-9;
    const double aspect_error = 5.0 * std::sqrt(2.0) * expected.Expected("standard_error_log_aspect").f64 + 1e-9;
    EXPECT_NEAR(moments.area, expected.Expected("area_mean").f64, area_error);
    EXPECT_NEAR(moments.log_aspect, expected.Expected("log_aspect_mean").f64, aspect_error);
    EXPECT_NEAR(std::sqrt(std::max(0.0, moments.area_square - moments.area * moments.area)),
                expected.Expected("area_std").f64, 0.01);
    EXPECT_NEAR(std::sqrt(std::max(0.0, moments.log_aspect_square - moments.log_aspect * moments.log_aspect)),
                expected.Expected("log_aspect_std").f64, 0.01);
  });
}

// Whether the whole image is too narrow or too low for every box that the rule may draw. Otherwise the boxes are
// random, and depend on the generator of whoever draws.
bool NothingFits(const golden::Case& golden_case) {
  const double height = golden_case.Double("height");
  const double width = golden_case.Double("width");
  const double smallest = IntervalOf(golden_case, "scale").lo * height * width;
  const Interval ratio = IntervalOf(golden_case, "ratio");
  // A box of area a and ratio r is sqrt(a r) wide and sqrt(a / r) high, and both are rounded.
  return std::max(ratio.lo, smallest / std::pow(height + 0.5, 2)) >
         std::min(ratio.hi, std::pow(width + 0.5, 2) / smallest);
}

// Whether a rounded box may come from the intervals of the case.
bool FollowsTheRule(const golden::Case& golden_case, const std::vector<int64_t>& box) {
  const double height = golden_case.Double("height");
  const double width = golden_case.Double("width");
  const Interval scale = IntervalOf(golden_case, "scale");
  const Interval ratio = IntervalOf(golden_case, "ratio");
  const double tall = static_cast<double>(box[2]);
  const double wide = static_cast<double>(box[3]);
  const bool inside = box[0] >= 0 && box[1] >= 0 && static_cast<double>(box[0]) + tall <= height &&
                      static_cast<double>(box[1]) + wide <= width;
  // Ten tries may fail where some box would fit: then the centred one is taken, which fills a side.
  const bool centred = (tall == height || wide == width) && box[0] == (static_cast<int64_t>(height) - box[2]) / 2 &&
                       box[1] == (static_cast<int64_t>(width) - box[3]) / 2;
  if (centred) return inside;
  return inside && (tall + 0.5) * (wide + 0.5) >= scale.lo * height * width &&
         (tall - 0.5) * (wide - 0.5) <= scale.hi * height * width && (wide + 0.5) / (tall - 0.5) >= ratio.lo &&
         (wide - 0.5) / (tall + 0.5) <= ratio.hi;
}

std::vector<int64_t> Draw(const golden::Case& golden_case, int64_t index) {
  CounterRandom random(0, 0, index, 0, 0);
  const CropBox box =
      DrawCropBox(random, static_cast<int>(golden_case.Count("height")), static_cast<int>(golden_case.Count("width")),
                  IntervalOf(golden_case, "scale"), IntervalOf(golden_case, "ratio"));
  return {box.top, box.left, box.height, box.width};
}

// Where nothing fits, both give the same centred box; else both draw from the same intervals.
TEST(CropBoxGolden, BoxesAreThoseOfTorchvision) {
  RunGolden("crop_boxes", "rrc_boxes", [](const golden::Case& golden_case) {
    const std::vector<ConfigNode>& expected = golden_case.steps[0].Expected("boxes").value.items();
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::vector<int64_t> theirs = golden::ToInts(expected[i]);
      const std::vector<int64_t> ours = Draw(golden_case, static_cast<int64_t>(i));
      ASSERT_EQ(theirs.size(), 4u);
      if (NothingFits(golden_case)) {
        EXPECT_EQ(ours, theirs);
      } else {
        EXPECT_TRUE(FollowsTheRule(golden_case, theirs)) << i;
        EXPECT_TRUE(FollowsTheRule(golden_case, ours)) << i;
      }
    }
  });
}

TEST(CropBox, TallImage_IsCutToTheSmallestRatio) {
  CounterRandom random(0, 0, 0, 0, 0);

  const CropBox box = DrawCropBox(random, 300, 60, {0.9, 1.0}, {0.75, 4.0 / 3.0});

  EXPECT_EQ(box.height, 80);  // 60 / 0.75
  EXPECT_EQ(box.width, 60);
  EXPECT_EQ(box.top, 110);
  EXPECT_EQ(box.left, 0);
}

TEST(CropBox, AnyShapeAndRule_LiesInsideTheImage) {
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

TEST(CropBox, Union_HoldsBothAndNoMore) {
  const auto expect = [](const CropBox& a, const CropBox& b, const CropBox& expected) {
    const CropBox result = Union(a, b);
    EXPECT_EQ(result.top, expected.top);
    EXPECT_EQ(result.left, expected.left);
    EXPECT_EQ(result.height, expected.height);
    EXPECT_EQ(result.width, expected.width);
  };
  expect({2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5});
  expect({2, 3, 4, 5}, {3, 4, 1, 1}, {2, 3, 4, 5});
  expect({2, 30, 4, 5}, {10, 3, 7, 8}, {2, 3, 15, 32});
}

}  // namespace
}  // namespace ssl
