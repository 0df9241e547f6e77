// SPDX-License-Identifier: Apache-2.0
//
// Counts calls of operator new, to show that the transforms cost none once their buffers have grown.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/sample.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/allocation_count.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using Recipe = std::vector<std::string>;

// Sends images through `recipe` and returns how often memory was asked for after the first 2000.
int64_t AllocationsInTheSteadyState(const Recipe& recipe, int channels) {
  std::vector<std::unique_ptr<Transform>> transforms;
  for (const std::string& entry : recipe) transforms.push_back(MakeTransform(entry).value());
  TransformScratch scratch;
  Sample sample;
  int64_t before = 0;
  bool ok = true;
  for (uint64_t index = 0; index < 2200; ++index) {
    if (index == 2000) before = AllocationCount();
    sample.ResetViews(1);
    uint8_t* pixels = sample.view(0).image.Allocate(40, 50, channels);  // as a decoder does
    for (int64_t i = 0; i < sample.view(0).image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 + index);
    for (size_t operation = 0; operation < transforms.size(); ++operation) {
      const TransformContext context{/*seed=*/0, /*epoch=*/0, index, operation, scratch};
      ok = ok && transforms[operation]->Apply(context, &sample).ok();
    }
  }
  EXPECT_TRUE(ok);
  EXPECT_GT(before, 0);  // the counter works
  return AllocationCount() - before;
}

class TransformAllocation : public ::testing::TestWithParam<Recipe> {};

TEST_P(TransformAllocation, InTheSteadyState_ThereIsNone) {
  EXPECT_EQ(AllocationsInTheSteadyState(GetParam(), 1), 0);
  EXPECT_EQ(AllocationsInTheSteadyState(GetParam(), 3), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, TransformAllocation,
    ::testing::Values(
        Recipe{"{name: ImgReplicatePil, num_times: 2}", "{name: RandomResizedCrop, size: 28}",
               "name: RandomHorizontalFlip", "name: ImgPilColorDistortion", "name: ImgPilGaussianBlur",
               "{name: ImgPilMultiCropRandomApply, transforms: [{name: ImgPilRandomSolarize}], prob: [0.5, 0.5]}",
               "name: ToTensor", "{name: Normalize, mean: [0.5], std: [0.5]}"},
        Recipe{"{name: ImgPilToMultiCrop, total_num_crops: 4, num_crops: [2, 2], size_crops: [28, 16], "
               "crop_scales: [[0.3, 1.0], [0.05, 0.3]]}",
               "name: RandomVerticalFlip", "{name: ImgPilRandomColorJitter, strength: 0.5}", "name: RandomGrayscale",
               "name: ImgPilRandomPhotometric"},
        Recipe{"{name: RandAugment, num_layers: 6}", "{name: VisslAutoAugment, magnitude_std: 0.5}"},
        Recipe{"name: ImgRotatePil", "{name: ImgPilResizeLargerSide, size: 30}", "name: ImgPil2LabTensor",
               "{name: RandomErasing, value: random}"},
        Recipe{"{name: ImgPilToPatchesAndImage, crop_size_patches: 99, crop_size_image: 32}"},
        Recipe{"{name: MNISTImgPil2RGB, size: 44}", "name: ImgPilToRawTensor",
               "{name: ImgPatchesFromTensor, num_patches: 4, patch_jitter: 2}"},
        Recipe{"{name: Resize, size: 32}", "{name: RandomCrop, size: 30, padding: 2}", "{name: CenterCrop, size: 28}",
               "{name: ColorJitter, brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}", "name: Grayscale"}));

}  // namespace
}  // namespace ssl
