// SPDX-License-Identifier: Apache-2.0
//
// Batches whose views stay 8-bit: normalised, they are the batches of floats.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/loader/batch_buffer.h"
#include "ssl/data/loader/batch_layout.h"
#include "ssl/data/sample.h"
#include "ssl/kernels/normalize_pixels.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kRows = 3;

class BatchBufferPixels : public ::testing::Test {
 protected:
  // Three views, two of them of one size; grey and mirrored ones among them.
  Sample MakeSample(int row) const {
    Sample sample;
    sample.index = row;
    sample.ResetViews(3);
    for (int v = 0; v < 3; ++v) {
      View& view = sample.view(v);
      uint8_t* pixels = view.image.Allocate(v == 0 ? 4 : 5, 6, row == 1 ? 1 : 3);
      for (int64_t i = 0; i < view.image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(50 * v + 11 * i + row);
      view.flipped = (v + row) % 2 == 0;
      view.table = v == 0 ? &first_ : &others_;
    }
    return sample;
  }

  BatchLayout MakeLayout(const BatchLayout& given, bool keeps_pixels) const {
    BatchLayout layout = given;
    layout.batch_size = kRows;
    layout = LayoutFor(MakeSample(0), layout).value();
    layout.keeps_pixels = keeps_pixels;
    return layout;
  }

  Batch Fill(BatchBuffer* buffer, int64_t rows) const {
    for (int row = 0; row < rows; ++row) EXPECT_OK(buffer->Write(MakeSample(row), row));
    return buffer->Finish(rows);
  }

  static std::vector<at::Tensor> Images(const Batch& batch) {
    std::vector<at::Tensor> images = batch.views;
    for (const auto& input : batch.named_inputs) images.push_back(input.second);
    return images;
  }

  void ExpectTheFloats(const BatchLayout& given, int64_t rows) const {
    BatchBuffer floats(MakeLayout(given, /*keeps_pixels=*/false));
    BatchBuffer pixels(MakeLayout(given, /*keeps_pixels=*/true));
    const Batch expected = Fill(&floats, rows);
    const Batch actual = Fill(&pixels, rows);
    EXPECT_THAT(expected.normalizations, IsEmpty());
    const std::vector<at::Tensor> images = Images(actual);
    ASSERT_THAT(actual.normalizations, SizeIs(images.size()));
    for (size_t i = 0; i < images.size(); ++i) {
      EXPECT_TRUE(images[i].is_contiguous(at::MemoryFormat::ChannelsLast));
      const PixelNormalization& normalization = actual.normalizations[i];
      ASSERT_OK_AND_ASSIGN(const at::Tensor normalized,
                           NormalizePixels(images[i], normalization.mean, normalization.std));
      EXPECT_TRUE(normalized.equal(Images(expected)[i])) << i;
    }
    EXPECT_TRUE(actual.indices.equal(expected.indices));
  }

  const PixelTable first_ = MakeNormalizeTable({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  const PixelTable others_ = MakeToTensorTable();
};

TEST_F(BatchBufferPixels, Views_AreTheFloats) {
  ExpectTheFloats({}, kRows);
  ExpectTheFloats({}, kRows - 1);
}

TEST_F(BatchBufferPixels, JoinedNamedInputs_AreTheFloats) {
  BatchLayout layout;
  // By name the second one comes first.
  layout.inputs = {{"image", 0, 1, false}, {"crops", 1, -1, true}};
  layout.input_keys = {"image", "crops"};
  EXPECT_TRUE(CanKeepPixels(MakeLayout(layout, false)));
  ExpectTheFloats(layout, kRows);
  layout.input_keys = {"crops"};
  ExpectTheFloats(layout, kRows - 1);
}

TEST_F(BatchBufferPixels, TablesThatAreNoNormalisation_OrDifferInOneTensor_CannotKeepThem) {
  BatchLayout layout = MakeLayout({}, false);
  EXPECT_THAT(layout.tables, ElementsAre(&first_, &others_, &others_));
  EXPECT_TRUE(CanKeepPixels(layout));
  layout.inputs = {{"joined", 0, -1, true}};
  EXPECT_FALSE(CanKeepPixels(layout));
  for (const PixelTable& table : {MakeRawTable(), MakeLabTable(), MakeNormalizeTable({1}, {2}, PixelFloats::kRaw)}) {
    layout = MakeLayout({}, false);
    layout.tables[1] = &table;
    EXPECT_FALSE(CanKeepPixels(layout));
  }
}

TEST_F(BatchBufferPixels, SampleWithOtherFloatsThanTheFirst_IsRefused) {
  BatchBuffer buffer(MakeLayout({}, /*keeps_pixels=*/true));
  Sample other_table = MakeSample(7);
  other_table.view(1).table = &first_;
  EXPECT_THAT(buffer.Write(other_table, 0),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("sample 7, view 1 has another table than the first")));
  Sample erased = MakeSample(8);
  erased.view(2).erased.box = {0, 0, 1, 1};
  erased.view(2).erased.values = {0.5f, 0.5f, 0.5f};
  EXPECT_THAT(buffer.Write(erased, 0), StatusIs(absl::StatusCode::kInternal, HasSubstr("sample 8, view 2")));
}

}  // namespace
}  // namespace ssl
