// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_patches_from_tensor.h"

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// A pixel tells where it is: row in the first channel, column in the second.
Sample Positions(int height, int width) {
  Sample sample;
  sample.ResetViews(1);
  uint8_t* pixels = sample.view(0).image.Allocate(height, width, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, pixels += 3) {
      pixels[0] = static_cast<uint8_t>(y);
      pixels[1] = static_cast<uint8_t>(x);
      pixels[2] = 0;
    }
  }
  return sample;
}

TEST(ImgPatchesFromTensor, PatchesLieInTheirCells_DownTheColumns) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPatchesFromTensor, patch_jitter: 4}"));
  std::set<std::pair<int, int>> offsets;
  for (int i = 0; i < 100; ++i) {
    Sample sample = Positions(31, 33);  // cells of 10 pixels
    ASSERT_OK(ApplyTransform(*transform, &sample, i));
    ASSERT_EQ(sample.num_views(), 9);
    for (int v = 0; v < 9; ++v) {
      const Image& patch = sample.view(v).image;
      ASSERT_EQ(patch.height(), 6);
      ASSERT_EQ(patch.width(), 6);
      const int top = patch.pixels()[0] - v % 3 * 10;
      const int left = patch.pixels()[1] - v / 3 * 10;
      EXPECT_TRUE(top >= 0 && top < 4 && left >= 0 && left < 4) << top << " " << left;
      EXPECT_EQ(patch.row(5)[15], patch.pixels()[0] + 5);
      EXPECT_EQ(patch.row(5)[16], patch.pixels()[1] + 5);
      offsets.insert({top, left});
    }
  }
  EXPECT_EQ(offsets.size(), 16u) << "every place is drawn";
}

TEST(ImgPatchesFromTensor, StandsAfterToTensor) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> to_tensor, MakeTransform("name: ToTensor"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform,
                       MakeTransform("{name: ImgPatchesFromTensor, num_patches: 4, patch_jitter: 1}"));
  Sample sample = Positions(8, 8);
  sample.view(0).flipped = true;
  ASSERT_OK(ApplyTransform(*to_tensor, &sample));
  const PixelTable* table = sample.view(0).table;
  ASSERT_OK(ApplyTransform(*transform, &sample));
  for (int v = 0; v < 4; ++v) {
    EXPECT_EQ(sample.view(v).table, table);
    EXPECT_FALSE(sample.view(v).flipped);
  }
  EXPECT_EQ(sample.view(0).image.pixels()[1], 7) << "the patches of the mirrored image";
}

TEST(ImgPatchesFromTensor, WrongUse_NamesTheReason) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(MakeTransform("{name: ImgPatchesFromTensor, num_patches: 8}"),
              StatusIs(invalid, HasSubstr("run.yaml:1: TRANSFORMS.ImgPatchesFromTensor.num_patches is 8, expected a "
                                          "square number")));
  EXPECT_THAT(MakeTransform("{name: ImgPatchesFromTensor, patch_jitter: 0}"), StatusIs(invalid, HasSubstr("'0'")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform("name: ImgPatchesFromTensor"));
  Sample low = Positions(65, 200);
  EXPECT_THAT(ApplyTransform(*transform, &low),
              StatusIs(invalid, HasSubstr("image is 200 x 65, expected at least 66 pixels high")));
  Sample narrow = Positions(90, 89);
  EXPECT_THAT(ApplyTransform(*transform, &narrow), StatusIs(invalid, HasSubstr("as wide as high")));
  Sample two;
  two.ResetViews(2);
  EXPECT_THAT(ApplyTransform(*transform, &two), StatusIs(invalid, HasSubstr("patches of one image, but gets 2")));
}

}  // namespace
}  // namespace ssl
