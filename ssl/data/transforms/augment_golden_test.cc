// SPDX-License-Identifier: Apache-2.0
//
// What has no golden case in the common set: against images that Pillow and OpenCV made (testdata/augment).
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/photometric.h"

namespace ssl {
namespace {

void CheckGolden(const std::string& op, const std::function<void(const golden::Case&, Image*)>& change) {
  const golden::CaseRunner runner = [&](const golden::Case& golden_case) {
    Image image = ToImage(golden_case.steps[0].Input("image"));
    change(golden_case, &image);
    EXPECT_EQ(LargestDifference(image, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  };
  RunGolden("augment", op, runner, nullptr, kAugmentFolder);
}

TEST(AugmentGolden, EqualizeEqualsPillowsInEveryPixel) {
  CheckGolden("equalize", [](const golden::Case&, Image* image) { Equalize(image); });
}

TEST(AugmentGolden, InvertEqualsPillowsInEveryPixel) {
  CheckGolden("invert", [](const golden::Case&, Image* image) { Invert(image); });
}

TEST(AugmentGolden, SolarizeAddEqualsPillowsTableInEveryPixel) {
  CheckGolden("solarize_add", [](const golden::Case& golden_case, Image* image) {
    SolarizeAdd(static_cast<int>(golden_case.IntIn("added", 0, 255)), image);
  });
}

}  // namespace
}  // namespace ssl
