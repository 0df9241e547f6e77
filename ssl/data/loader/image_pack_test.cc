// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/image_pack.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/pinned_memory.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_pinned_memory.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int kBatchSize = 20;  // a full block and a part of one

// Two views of 2 x 3 and one of 4 x 4.
BatchLayout ThreeViews() {
  static const PixelTable table = MakeToTensorTable();
  BatchLayout layout;
  layout.batch_size = kBatchSize;
  layout.views = {{2, 3}, {2, 3}, {4, 4}};
  layout.tables = {&table, &table, &table};
  layout.plans_views = true;
  return layout;
}

// A column of `height` pixels that view v reads from row v + 1 on, to the last row but one.
Image Column(int height, int first) {
  Image image;
  uint8_t* const pixels = image.Allocate(height, 1, 3);
  for (int i = 0; i < 3 * height; ++i) pixels[i] = static_cast<uint8_t>(first + i);
  return image;
}

std::vector<ViewPlan> PlansOf(const Image& image, const BatchLayout& layout) {
  std::vector<ViewPlan> plans(layout.views.size());
  for (size_t v = 0; v < plans.size(); ++v) {
    const int top = static_cast<int>(v) + 1;
    plans[v].source_begin = 3 * top;
    plans[v].source_stride = 3;
    plans[v].rows = {image.height() - 1 - top, layout.views[v].height, 0, image.height() - 1 - top, 1};
    plans[v].columns = {1, layout.views[v].width, 0, 1, 1};
  }
  return plans;
}

int HeightOf(int64_t row, int more) { return 6 + static_cast<int>(row % 3) + more; }

void WriteRows(const BatchLayout& layout, int64_t rows, int more, ImagePack* pack) {
  for (int64_t row = 0; row < rows; ++row) {
    const Image image = Column(HeightOf(row, more), static_cast<int>(10 * row));
    EXPECT_OK(pack->Write(image, PlansOf(image, layout), row));
  }
}

std::vector<uint8_t> PackedBytes(const PackedImages& images) {
  std::vector<uint8_t> bytes;
  for (const at::Tensor& block : images.blocks) {
    const uint8_t* const first = block.const_data_ptr<uint8_t>();
    bytes.insert(bytes.end(), first, first + block.numel());
  }
  return bytes;
}

// Whether each plan reads its image's rows there.
void ExpectPixels(const PackedImages& images, int64_t rows, int more) {
  const std::vector<uint8_t> bytes = PackedBytes(images);
  const auto* plan = static_cast<const ViewPlan*>(images.plans.const_data_ptr());
  ASSERT_EQ(images.plans.numel(), static_cast<int64_t>(sizeof(ViewPlan)) * 3 * rows);
  for (int64_t row = 0; row < rows; ++row) {
    for (int v = 0; v < 3; ++v, ++plan) {
      EXPECT_EQ(bytes.at(plan->source_begin), 10 * row + 3 * (v + 1)) << "row " << row << ", view " << v;
      EXPECT_EQ(plan->rows.in, HeightOf(row, more) - 2 - v);
      EXPECT_LE(plan->source_begin + 3 * plan->rows.in, static_cast<int64_t>(bytes.size()));
    }
  }
}

TEST(ImagePack, Plans_FindTheirImagesInAllBlocks) {
  ImagePack pack(ThreeViews());
  WriteRows(ThreeViews(), kBatchSize, 0, &pack);
  pack.Finish(kBatchSize);
  EXPECT_THAT(pack.images().blocks, SizeIs(2));
  ExpectPixels(pack.images(), kBatchSize, 0);
}

// The first row and the last one of each image are read by none.
TEST(ImagePack, Image_IsThereOnce_WithoutRowsThatNoViewReads) {
  ImagePack pack(ThreeViews());
  WriteRows(ThreeViews(), 1, 0, &pack);
  pack.Finish(1);
  EXPECT_EQ(PackedBytes(pack.images()).size(), 3u * (HeightOf(0, 0) - 2));
}

TEST(ImagePack, NextBatch_TakesItsPlaceAndGrows) {
  ImagePack pack(ThreeViews());
  WriteRows(ThreeViews(), kBatchSize, 0, &pack);
  pack.Finish(kBatchSize);
  WriteRows(ThreeViews(), 18, 7, &pack);
  pack.Finish(18);
  ExpectPixels(pack.images(), 18, 7);
}

int64_t MemoryOf(const at::Tensor& block) { return static_cast<int64_t>(block.storage().nbytes()); }

// 16 images of a row each whose view reads all of it.
void WriteBlock(int width, ImagePack* pack) {
  Image image;
  image.Allocate(1, width, 3);
  ViewPlan plan;
  plan.source_stride = 3 * width;
  plan.rows = {1, 2, 0, 1, 1};
  plan.columns = {width, 3, 0, width, 1};
  for (int64_t row = 0; row < ImagePack::kBlockRows; ++row) EXPECT_OK(pack->Write(image, {plan}, row));
  pack->Finish(ImagePack::kBlockRows);
}

TEST(ImagePack, MemoryOfHugeImages_GoesAfterManySmallBatches) {
  BatchLayout layout = ThreeViews();
  layout.batch_size = ImagePack::kBlockRows;
  layout.views = {{2, 3}};
  layout.tables.resize(1);
  ImagePack pack(layout);
  WriteBlock(1 << 19, &pack);  // 24 MiB
  constexpr int64_t kHuge = 1 << 25;
  for (int batch = 0; batch < 64; ++batch) {
    WriteBlock(100, &pack);
    EXPECT_EQ(MemoryOf(pack.images().blocks[0]), kHuge) << "others may follow";
  }
  WriteBlock(100, &pack);
  EXPECT_EQ(MemoryOf(pack.images().blocks[0]), 8192) << "4800 bytes";
}

TEST(ImagePack, PinnedMemoryOfHugeImages_GoesToTheSystem) {
  StandinDevice::Install();
  BatchLayout layout = ThreeViews();
  layout.batch_size = ImagePack::kBlockRows;
  layout.views = {{2, 3}};
  layout.tables.resize(1);
  layout.device = StandinDevice::device();
  ImagePack pack(layout);
  WriteBlock(1 << 19, &pack);  // 24 MiB
  ReleaseUnusedPinned(layout.device);
  for (int batch = 0; batch < 66; ++batch) WriteBlock(100, &pack);
  EXPECT_EQ(MemoryOf(pack.images().blocks[0]), 8192);
  EXPECT_EQ(UnusedPinnedBytes(), 0);
}

TEST(ImagePack, BytesOfImages_AreThoseOfItsBlocks) {
  BatchLayout layout = ThreeViews();
  layout.image_bytes = 1000;
  EXPECT_EQ(ImagePack::BytesOfImages(layout), 20 * 1000);
  layout.device = c10::Device(c10::kCUDA, 0);
  EXPECT_EQ(ImagePack::BytesOfImages(layout), 16384 + 4096) << "16 and 4 images";
}

std::vector<int64_t> ResultBegins(const PackedImages& images, int count) {
  const auto* const plans = static_cast<const ViewPlan*>(images.plans.const_data_ptr());
  std::vector<int64_t> begins;
  std::transform(plans, plans + count, std::back_inserter(begins), [](const ViewPlan& p) { return p.result_begin; });
  return begins;
}

TEST(ImagePack, Views_HaveATensorEach) {
  ImagePack pack(ThreeViews());
  WriteRows(ThreeViews(), 2, 0, &pack);
  pack.Finish(2);
  EXPECT_THAT(pack.images().sizes,
              ElementsAre(ElementsAre(2, 3, 2, 3), ElementsAre(2, 3, 2, 3), ElementsAre(2, 3, 4, 4)));
  EXPECT_THAT(ResultBegins(pack.images(), 6), ElementsAre(0, 36, 72, 18, 54, 120));
}

TEST(ImagePack, JoinedViews_LieSideBySide) {
  BatchLayout layout = ThreeViews();
  layout.views[2] = layout.views[0];
  layout.inputs[0].joins_views = true;
  ImagePack pack(layout);
  WriteRows(layout, 2, 0, &pack);
  pack.Finish(2);
  EXPECT_THAT(pack.images().sizes, ElementsAre(ElementsAre(6, 3, 2, 3)));
  EXPECT_THAT(ResultBegins(pack.images(), 6), ElementsAre(0, 18, 36, 54, 72, 90));
}

TEST(ImagePack, PlanOfAnotherView_IsRefused) {
  ImagePack pack(ThreeViews());
  const Image image = Column(8, 0);
  std::vector<ViewPlan> plans = PlansOf(image, ThreeViews());
  plans[1].rows.out = 5;
  EXPECT_THAT(pack.Write(image, plans, 0), StatusIs(absl::StatusCode::kInternal, HasSubstr("view 1")));
  plans.resize(1);
  EXPECT_THAT(pack.Write(image, plans, 0), StatusIs(absl::StatusCode::kInternal, HasSubstr("view 0")));
}

}  // namespace
}  // namespace ssl
