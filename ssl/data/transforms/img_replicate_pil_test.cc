// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_replicate_pil.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Pixels(const Image& image) {
  return std::vector<uint8_t>(image.pixels(), image.pixels() + image.size_bytes());
}

absl::Status ApplyWith(TransformScratch* scratch, const Transform& transform, Sample* sample) {
  const TransformContext context{/*seed=*/1, /*epoch=*/0, /*sample=*/0, /*operation=*/0, *scratch};
  return transform.Apply(context, sample);
}

TEST(ImgReplicatePil, OneImage_BecomesEqualViewsThatChangeApart) {
  for (const bool lent : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                         MakeTransform("{name: ImgReplicatePil, num_times: 3}"));
    const Sample original = OneImage(3, 4, 3);
    const std::vector<uint8_t> before = Pixels(original.view(0).image);
    Sample sample = original;
    if (lent) sample.view(0).image.Borrow(original.view(0).image.pixels(), 3, 4, 3);
    sample.view(0).flipped = true;
    TransformScratch scratch;

    ASSERT_OK(ApplyWith(&scratch, *transform, &sample));

    ASSERT_EQ(sample.num_views(), 3);
    for (int v = 0; v < 3; ++v) {
      EXPECT_EQ(Pixels(sample.view(v).image), before);
      EXPECT_TRUE(sample.view(v).flipped);
    }
    sample.view(0).image.MutablePixels()[0] = 99;
    sample.view(2).image.MutablePixels()[0] = 98;
    EXPECT_EQ(Pixels(sample.view(1).image), before);
    EXPECT_EQ(Pixels(original.view(0).image), before);
  }
}

TEST(ImgReplicatePil, SeveralImages_StandNextToTheirCopies) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> twice, MakeTransform("name: ImgReplicatePil"));
  Sample sample = OneImage(2, 2, 1);
  TransformScratch scratch;
  ASSERT_OK(ApplyWith(&scratch, *twice, &sample));
  sample.view(0).image.MutablePixels()[0] = 10;  // owned from here on, the other still lent
  sample.view(1).flipped = true;
  const std::vector<uint8_t> first = Pixels(sample.view(0).image);
  const std::vector<uint8_t> second = Pixels(sample.view(1).image);

  ASSERT_OK(ApplyWith(&scratch, *twice, &sample));

  ASSERT_EQ(sample.num_views(), 4);
  for (int v = 0; v < 4; ++v) {
    EXPECT_EQ(Pixels(sample.view(v).image), v < 2 ? first : second) << v;
    EXPECT_EQ(sample.view(v).flipped, v >= 2) << v;
  }
}

TEST(ImgReplicatePil, NextSampleInTheSameScratch_IsItsOwnImage) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> twice, MakeTransform("name: ImgReplicatePil"));
  TransformScratch scratch;
  Sample sample;
  for (int first : {5, 50, 7}) {
    sample.ResetViews(1);
    uint8_t* pixels = sample.view(0).image.Allocate(1, 2, 1);
    pixels[0] = static_cast<uint8_t>(first);
    pixels[1] = static_cast<uint8_t>(first + 1);
    ASSERT_OK(ApplyWith(&scratch, *twice, &sample));
    for (int v = 0; v < 2; ++v) {
      EXPECT_EQ(Pixels(sample.view(v).image)[0], first);
      EXPECT_EQ(Pixels(sample.view(v).image)[1], first + 1);
    }
  }
}

TEST(ImgReplicatePil, WrongParameters_NameKeyAndValue) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("name: ImgReplicatePil\nnum_times: 0"),
              StatusIs(invalid, HasSubstr("run.yaml:2: TRANSFORMS.ImgReplicatePil.num_times is '0'")));
  EXPECT_THAT(MakeTransform("{name: ImgReplicatePil, num_time: 2}"),
              StatusIs(invalid, HasSubstr("did you mean 'num_times'?")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> many,
                       MakeTransform("{name: ImgReplicatePil, num_times: 1000}"));
  Sample sample = OneImage(1, 1, 1);
  sample.SetNumViews(2);
  EXPECT_THAT(ApplyTransform(*many, &sample), StatusIs(invalid, HasSubstr("makes 2000 views, expected at most 1024")));
}

}  // namespace
}  // namespace ssl
