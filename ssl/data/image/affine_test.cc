// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/image/affine.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/testing/golden_cases.h"

namespace ssl {
namespace {

AffineSampling SamplingOf(const golden::Case& golden_case) {
  static const auto* const names = new std::map<std::string, AffineSampling>{{"nearest", AffineSampling::kNearest},
                                                                             {"bilinear", AffineSampling::kBilinear},
                                                                             {"bicubic", AffineSampling::kBicubic}};
  return names->at(golden_case.Text("sampling"));
}

uint8_t FillOf(const golden::Case& golden_case) { return static_cast<uint8_t>(golden_case.IntIn("fill", 0, 255)); }

void ExpectGolden(const golden::Case& golden_case, const Image& result) {
  EXPECT_EQ(LargestDifference(result, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
}

TEST(AffineGolden, TransformEqualsPillowsInEveryPixel) {
  RunGolden(
      "augment", "affine",
      [](const golden::Case& golden_case) {
        const std::vector<double> matrix = golden_case.Doubles("matrix", 6);
        AffineMap map;
        std::copy(matrix.begin(), matrix.end(), map.begin());
        Image result;
        TransformAffine(ToImage(golden_case.steps[0].Input("image")), map, SamplingOf(golden_case), FillOf(golden_case),
                        &result);
        ExpectGolden(golden_case, result);
      },
      nullptr, kAugmentFolder);
}

TEST(AffineGolden, RotationEqualsPillowsInEveryPixel) {
  RunGolden(
      "augment", "rotate",
      [](const golden::Case& golden_case) {
        Image result;
        RotateImage(ToImage(golden_case.steps[0].Input("image")), golden_case.Double("degrees"),
                    SamplingOf(golden_case), FillOf(golden_case), &result);
        ExpectGolden(golden_case, result);
      },
      nullptr, kAugmentFolder);
}

TEST(Affine, FourQuarterTurnsOfASquare_GiveItBack) {
  Image image;
  uint8_t* pixels = image.Allocate(5, 5, 3);
  for (int i = 0; i < 75; ++i) pixels[i] = static_cast<uint8_t>(3 * i);
  Image turned;
  turned.CopyFrom(image);
  for (int quarter = 0; quarter < 4; ++quarter) {
    Image next;
    RotateImage(turned, 90.0, AffineSampling::kNearest, 0, &next);
    EXPECT_GT(LargestDifference(next, turned), 0);
    turned.CopyFrom(next);
  }
  EXPECT_EQ(LargestDifference(turned, image), 0);
}

TEST(Affine, FarOutside_IsAllFill) {
  Image image;
  std::fill_n(image.Allocate(4, 6, 1), 24, 200);
  for (const AffineSampling sampling :
       {AffineSampling::kNearest, AffineSampling::kBilinear, AffineSampling::kBicubic}) {
    for (const AffineMap& map : {AffineMap{1, 0, 1e6, 0, 1, 0}, AffineMap{1, 0.5, -1e6, 0.25, 1, -1e6}}) {
      Image result;
      TransformAffine(image, map, sampling, 9, &result);
      EXPECT_EQ(std::count(result.pixels(), result.pixels() + 24, 9), 24);
    }
  }
}

}  // namespace
}  // namespace ssl
