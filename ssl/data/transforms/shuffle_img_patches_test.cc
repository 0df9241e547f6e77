// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/shuffle_img_patches.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The entry with a file of such rows, three numbers each.
std::string Entry(const std::vector<int64_t>& numbers) {
  const std::string path = absl::StrCat(MakeTempDir("permutations"), "/perm.npy");
  EXPECT_OK(WriteNpy<int64_t>(PosixFileSystem(), path, {static_cast<int64_t>(numbers.size()) / 3, 3}, numbers));
  return absl::StrCat("{name: ShuffleImgPatches, perm_file: ", path, "}");
}

// Three views of one pixel: 10, 11, 12.
Sample ThreeViews() {
  Sample sample;
  sample.ResetViews(3);
  for (int v = 0; v < 3; ++v) *sample.view(v).image.Allocate(1, 1, 1) = static_cast<uint8_t>(10 + v);
  return sample;
}

std::vector<int> Pixels(const Sample& sample) {
  std::vector<int> pixels;
  for (int v = 0; v < sample.num_views(); ++v) pixels.push_back(sample.view(v).image.pixels()[0]);
  return pixels;
}

TEST(ShuffleImgPatches, LabelIsTheRow_FromZeroOrFromOne) {
  for (const int64_t first : {0, 1}) {
    std::vector<int64_t> numbers = {2, 0, 1, 0, 1, 2};
    for (int64_t& number : numbers) number += first;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(Entry(numbers)));
    EXPECT_EQ(transform->num_label_classes(), 2);
    int rows[2] = {0, 0};
    for (int i = 0; i < 400; ++i) {
      Sample sample = ThreeViews();
      ASSERT_OK(ApplyTransform(*transform, &sample, i));
      ASSERT_TRUE(sample.label == 0 || sample.label == 1) << sample.label;
      EXPECT_EQ(Pixels(sample), sample.label == 0 ? (std::vector<int>{12, 10, 11}) : (std::vector<int>{10, 11, 12}));
      ++rows[sample.label];
    }
    EXPECT_NEAR(rows[0], 200, 50);  // five standard deviations
  }
}

TEST(ShuffleImgPatches, RowThatIsNoPermutation_IsNamed) {
  EXPECT_THAT(MakeTransform(Entry({0, 1, 2, 0, 2, 2})),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("run.yaml:1: TRANSFORMS.ShuffleImgPatches.perm_file, /"),
                             HasSubstr("row 1 is [0, 2, 2], expected each number from 0 to 2 once"))));
  EXPECT_THAT(MakeTransform(Entry({1, 2, 4})), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("from 1 to 3 once")));
}

TEST(ShuffleImgPatches, FileThatIsNoTable_IsRefused) {
  const std::string path = absl::StrCat(MakeTempDir("permutations"), "/flat.npy");
  ASSERT_OK(WriteNpy<int64_t>(PosixFileSystem(), path, {3}, {0, 1, 2}));
  EXPECT_THAT(MakeTransform(absl::StrCat("{name: ShuffleImgPatches, perm_file: ", path, "}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shape is [3], expected [permutations, views]")));
  EXPECT_THAT(MakeTransform("{name: ShuffleImgPatches, perm_file: /no/such.npy}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.npy")));
  EXPECT_THAT(MakeTransform("name: ShuffleImgPatches"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("perm_file is missing")));
}

TEST(ShuffleImgPatches, OtherNumberOfViews_IsAnError) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Transform> transform, MakeTransform(Entry({0, 1, 2})));
  Sample sample = OneImage(1, 1, 1);
  EXPECT_THAT(ApplyTransform(*transform, &sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("orders 3 views")));
}

}  // namespace
}  // namespace ssl
