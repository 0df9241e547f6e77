// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_random_photometric.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/random.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/photometric.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

TEST(ImgPilRandomPhotometric, Chain_IsPosterizeSharpnessSolarizeAutoContrast) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> always, MakeTransform("{name: ImgPilRandomPhotometric, p: 1}"));
  for (int channels : {1, 3}) {
    for (uint64_t index = 0; index < 20; ++index) {
      Sample sample = OneImage(6, 7, channels, 30);
      Image expected = sample.view(0).image;
      CounterRandom random(/*seed=*/1, /*epoch=*/0, index, /*view=*/0, /*operation=*/0);
      ASSERT_TRUE(random.Bernoulli(1.0));
      Image scratch;
      Posterize(static_cast<int>(random.UniformInt(4, 8)), &expected);
      AdjustSharpness(random.Uniform(0.1, 1.9), &scratch, &expected);
      Solarize(static_cast<int>(random.UniformInt(0, 256)), &expected);
      AutoContrast(&expected);

      ASSERT_OK(ApplyTransform(*always, &sample, index));

      EXPECT_EQ(Pixels(sample.view(0).image), Pixels(expected));
    }
  }
}

TEST(ImgPilRandomPhotometric, Probability_IsTwoThirdsOrAsGiven) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> usual, MakeTransform("name: ImgPilRandomPhotometric"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> never, MakeTransform("{name: ImgPilRandomPhotometric, p: 0}"));
  int changed = 0;
  for (int index = 0; index < 2000; ++index) {
    Sample sample = OneImage(3, 3, 1, 60);  // autocontrast always changes it
    const std::vector<uint8_t> before = Pixels(sample.view(0).image);
    ASSERT_OK(ApplyTransform(*never, &sample, index));
    EXPECT_EQ(Pixels(sample.view(0).image), before);
    ASSERT_OK(ApplyTransform(*usual, &sample, index));
    changed += Pixels(sample.view(0).image) != before;
  }
  EXPECT_NEAR(changed, 2000 * 0.66, 5 * std::sqrt(2000 * 0.66 * 0.34));
}

TEST(ImgPilRandomPhotometric, WrongParameters_NameKeyAndValue) {
  EXPECT_THAT(MakeTransform("{name: ImgPilRandomPhotometric, p: 7}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:1: TRANSFORMS.ImgPilRandomPhotometric.p is '7'")));
}

}  // namespace
}  // namespace ssl
