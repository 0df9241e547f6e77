// SPDX-License-Identifier: Apache-2.0
//
// A pipeline whose data set decodes only what the crops need gives the views that it gives of whole images.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using Recipe = std::vector<std::string>;
using Transforms = std::vector<std::unique_ptr<Transform>>;

std::unique_ptr<DiskDataset> Images() {
  PathList paths;
  for (const char* name :
       {"rgb_q90.jpg", "rgb_q75_444.jpg", "progressive.jpg", "odd_q50.jpg", "cmyk.jpg", "gray.jpg"}) {
    paths.Add(absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                           "/ssl/data/testdata/decode/images/", name));
  }
  return std::make_unique<DiskDataset>(std::move(paths), std::vector<int64_t>(), EncodedImageOptions());
}

Transforms MakeAll(const Recipe& recipe) {
  Transforms transforms;
  for (const std::string& entry : recipe) transforms.push_back(MakeTransform(entry).value());
  return transforms;
}

class NeededRegions : public ::testing::TestWithParam<Recipe> {};

TEST_P(NeededRegions, ViewsAreThoseOfWholeImages) {
  const std::unique_ptr<DiskDataset> images = Images();
  const int64_t count = images->size();
  const Transforms transforms = MakeAll(GetParam());
  const Pipeline pipeline(Images(), MakeAll(GetParam()), LabelType::kStandard, /*seed=*/3);
  PipelineScratch scratch;
  TransformScratch whole_scratch;
  for (uint64_t epoch = 0; epoch < 40; ++epoch) {
    for (int64_t index = 0; index < count; ++index) {
      SCOPED_TRACE(::testing::Message() << "epoch " << epoch << ", image " << index);
      ASSERT_OK(pipeline.Read(epoch, index, &scratch));
      Sample whole;
      whole.ResetViews(1);
      ASSERT_OK(images->Get(index, &whole));
      for (size_t i = 0; i < transforms.size(); ++i) {
        const TransformContext context{/*seed=*/3, epoch, static_cast<uint64_t>(index), i, whole_scratch};
        ASSERT_OK(transforms[i]->Apply(context, &whole));
      }
      ASSERT_EQ(scratch.sample.num_views(), whole.num_views());
      for (int v = 0; v < whole.num_views(); ++v) {
        const Image& expected = whole.view(v).image;
        const Image& image = scratch.sample.view(v).image;
        ASSERT_EQ(image.size_bytes(), expected.size_bytes());
        EXPECT_TRUE(std::equal(image.pixels(), image.pixels() + image.size_bytes(), expected.pixels())) << "view " << v;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, NeededRegions,
    ::testing::Values(Recipe{}, Recipe{"{name: RandomResizedCrop, size: 20}"},
                      Recipe{"{name: ImgReplicatePil, num_times: 2}", "{name: ImgReplicatePil, num_times: 2}",
                             "{name: RandomResizedCrop, size: 20, scale: [0.05, 0.4]}"},
                      Recipe{"{name: ImgPilToMultiCrop, total_num_crops: 4, num_crops: [1, 3], size_crops: [24, 8], "
                             "crop_scales: [[0.1, 0.6], [0.02, 0.1]]}"},
                      Recipe{"name: RandomHorizontalFlip", "{name: RandomResizedCrop, size: 20}"},
                      Recipe{"{name: Resize, size: 32}", "{name: CenterCrop, size: 28}"}));

}  // namespace
}  // namespace ssl
