// SPDX-License-Identifier: Apache-2.0
//
// Counts calls of operator new, to show that a sample costs none once the buffers have grown.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/disk_dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/loader/batch_buffer.h"
#include "ssl/data/loader/data_loader.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/color_jitter.h"
#include "ssl/data/transforms/img_pil_to_multi_crop.h"
#include "ssl/data/transforms/random_horizontal_flip.h"
#include "ssl/data/transforms/to_tensor.h"
#include "ssl/testing/allocation_count.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

std::unique_ptr<Dataset> GreyImages(int64_t count) {
  ImageArray array;
  array.count = count;
  array.height = array.width = 28;
  array.pixels.resize(count * 28 * 28);
  for (size_t i = 0; i < array.pixels.size(); ++i) array.pixels[i] = static_cast<uint8_t>(i * 7 + i / 256);
  array.labels.resize(count);
  return ArrayDataset::Create(std::move(array), "images").value();
}

TEST(Allocation, SampleInTheSteadyState_AllocatesNothing) {
  std::vector<std::unique_ptr<Transform>> transforms;
  const RandomCropRule large = {28, 28, {0.3, 1.0}};
  const RandomCropRule small = {16, 16, {0.05, 0.3}};
  transforms.push_back(std::make_unique<ImgPilToMultiCrop>(std::vector<RandomCropRule>{large, large, small, small}));
  transforms.push_back(std::make_unique<RandomHorizontalFlip>(0.5));
  ColorJitter::Strength strength;
  strength.brightness = strength.contrast = {0.5, 1.5};
  transforms.push_back(std::make_unique<ColorJitter>(strength));
  transforms.push_back(std::make_unique<ToTensor>());
  transforms.push_back(std::make_unique<Normalize>(std::vector<double>{0.3}, std::vector<double>{0.4}));
  const Pipeline pipeline(GreyImages(64), std::move(transforms), LabelType::kStandard, 0);
  PipelineScratch scratch;
  ASSERT_OK(pipeline.Read(0, 0, &scratch));
  BatchLayout layout;
  layout.batch_size = 64;
  layout.has_labels = true;
  ASSERT_OK_AND_ASSIGN(layout, LayoutFor(scratch.sample, layout));
  BatchBuffer buffer(layout);
  // Every filter size has been met after some epochs.
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    for (int64_t i = 0; i < 64; ++i) ASSERT_TRUE(pipeline.Read(epoch, i, &scratch).ok());
  }

  const int64_t before = AllocationCount();
  bool ok = true;
  for (int64_t i = 0; i < 64; ++i) {
    ok = ok && pipeline.Read(50, i, &scratch).ok();
    ok = ok && buffer.Write(scratch.sample, i).ok();
  }
  const int64_t during = AllocationCount() - before;

  EXPECT_TRUE(ok);
  EXPECT_EQ(during, 0);
  EXPECT_GT(before, 0);  // the counter works
}

// Images of 10 x 10 pixels, but for the first, which has 5000 x 4000.
class OneHugeImage : public Dataset {
 public:
  int64_t size() const override { return 100; }
  bool has_labels() const override { return false; }
  std::string description() const override { return "one huge image"; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    Image* image = &sample->view(0).image;
    uint8_t* pixels = index == 0 ? image->Allocate(5000, 4000, 3) : image->Allocate(10, 10, 3);
    std::fill_n(pixels, image->size_bytes(), static_cast<uint8_t>(index));
    return absl::OkStatus();
  }
};

TEST(Allocation, MemoryOfAHugeImage_GoesWhenSmallOnesFollow) {
  std::vector<std::unique_ptr<Transform>> transforms;
  transforms.push_back(std::make_unique<ImgPilToMultiCrop>(std::vector<RandomCropRule>{{8, 8, {0.3, 1.0}}}));
  const Pipeline pipeline(std::make_unique<OneHugeImage>(), std::move(transforms), LabelType::kStandard, 0);
  PipelineScratch scratch;
  const int64_t before = AllocatedBytes();
  ASSERT_OK(pipeline.Read(0, 0, &scratch));
  EXPECT_GE(AllocatedBytes() - before, 5000 * 4000 * 3);
  for (int64_t i = 1; i < 100; ++i) ASSERT_OK(pipeline.Read(0, i, &scratch));
  EXPECT_LT(AllocatedBytes() - before, 1 << 20);

  // Huge ones again and again keep it.
  for (int64_t i = 0; i < 10; ++i) ASSERT_OK(pipeline.Read(0, i % 5, &scratch));
  const int64_t allocations = AllocationCount();
  bool ok = true;
  for (int64_t i = 0; i < 100; ++i) ok = ok && pipeline.Read(0, i % 5, &scratch).ok();
  EXPECT_TRUE(ok);
  EXPECT_EQ(AllocationCount() - allocations, 0);
}

DiskDataset ImagesInFiles() {
  PathList paths;
  for (const char* name : {"rgb_q90.jpg", "rgb_q75_444.jpg", "progressive.jpg"}) {
    paths.Add(absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                           "/ssl/data/testdata/decode/images/", name));
  }
  return DiskDataset(std::move(paths), {}, EncodedImageOptions());
}

// Of one epoch over `images` when two have gone by.
int64_t AllocationsOfAnEpoch(const Dataset& images) {
  Sample sample;
  bool ok = true;
  const auto read_all = [&] {
    for (int64_t i = 0; i < images.size(); ++i) {
      sample.ResetViews(1);
      ok = ok && images.Get(i, &sample).ok();
    }
  };
  read_all();
  read_all();
  const int64_t before = AllocationCount();
  read_all();
  const int64_t during = AllocationCount() - before;
  EXPECT_TRUE(ok);
  return during;
}

TEST(Allocation, ImageFromAFile_AllocatesNothing) { EXPECT_EQ(AllocationsOfAnEpoch(ImagesInFiles()), 0); }

TEST(Allocation, ImageFromTheCache_AllocatesNothing) {
  for (const CacheContent content : {CacheContent::kDecoded, CacheContent::kRaw}) {
    DiskDataset images = ImagesInFiles();
    images.KeepInMemory({content, int64_t{1} << 30});
    EXPECT_EQ(AllocationsOfAnEpoch(images), 0);
  }
}

}  // namespace
}  // namespace ssl
