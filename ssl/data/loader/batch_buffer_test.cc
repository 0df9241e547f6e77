// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/batch_buffer.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/sample.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

class BatchBufferTest : public ::testing::Test {
 protected:
  // An image whose byte at (y, x, c) is 10 * number + channels * (y * width + x) + c.
  void AddView(int height, int width, int channels, int number, Sample* sample) {
    const int v = sample->num_views();
    sample->ResetViews(v + 1);
    uint8_t* pixels = sample->view(v).image.Allocate(height, width, channels);
    for (int i = 0; i < height * width * channels; ++i) pixels[i] = static_cast<uint8_t>(10 * number + i);
    for (int i = 0; i <= v; ++i) sample->view(i).table = &table_;
  }

  BatchLayout Layout(int64_t batch_size, int channels, std::vector<ViewShape> views) {
    BatchLayout layout;
    layout.batch_size = batch_size;
    layout.channels = channels;
    layout.has_labels = true;
    layout.views = std::move(views);
    return layout;
  }

  const PixelTable table_ = MakeToTensorTable();
};

TEST_F(BatchBufferTest, Views_AreChannelsLastBatchesByCrop) {
  BatchBuffer buffer(Layout(2, 3, {{2, 3}, {1, 1}}));
  for (int row = 0; row < 2; ++row) {
    Sample sample;
    AddView(2, 3, 3, row, &sample);
    AddView(1, 1, 3, row + 5, &sample);
    sample.index = 40 + row;
    sample.label = row;
    ASSERT_OK(buffer.Write(sample, row));
  }

  const Batch& batch = buffer.Finish(2);

  ASSERT_EQ(batch.views.size(), 2u);
  EXPECT_EQ(batch.views[0].sizes(), (std::vector<int64_t>{2, 3, 2, 3}));
  EXPECT_EQ(batch.views[1].sizes(), (std::vector<int64_t>{2, 3, 1, 1}));
  EXPECT_TRUE(batch.views[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  for (int row = 0; row < 2; ++row) {
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 2; ++y) {
        for (int x = 0; x < 3; ++x) {
          EXPECT_FLOAT_EQ(batch.views[0][row][c][y][x].item<float>(), (10 * row + 3 * (y * 3 + x) + c) / 255.0f);
        }
      }
      EXPECT_FLOAT_EQ(batch.views[1][row][c][0][0].item<float>(), (10 * (row + 5) + c) / 255.0f);
    }
    EXPECT_EQ(batch.indices[row].item<int64_t>(), 40 + row);
    EXPECT_EQ(batch.targets[row].item<int64_t>(), row);
  }
}

TEST_F(BatchBufferTest, GreyImage_FillsAllChannels) {
  for (int channels : {1, 3}) {
    BatchBuffer buffer(Layout(1, channels, {{2, 2}}));
    Sample sample;
    AddView(2, 2, 1, 0, &sample);
    ASSERT_OK(buffer.Write(sample, 0));
    const Batch& batch = buffer.Finish(1);
    for (int c = 0; c < channels; ++c) {
      EXPECT_FLOAT_EQ(batch.views[0][0][c][1][0].item<float>(), 2 / 255.0f);
      EXPECT_FLOAT_EQ(batch.views[0][0][c][1][1].item<float>(), 3 / 255.0f);
    }
  }
}

TEST_F(BatchBufferTest, FlippedView_IsMirroredLeftRight) {
  for (int channels : {1, 3}) {
    BatchBuffer buffer(Layout(1, 3, {{2, 3}}));
    Sample sample;
    AddView(2, 3, channels, 0, &sample);
    sample.view(0).flipped = true;
    ASSERT_OK(buffer.Write(sample, 0));
    const Batch& batch = buffer.Finish(1);
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 3; ++x) {
        EXPECT_FLOAT_EQ(batch.views[0][0][0][y][x].item<float>(), channels * (y * 3 + 2 - x) / 255.0f);
      }
    }
  }
}

TEST_F(BatchBufferTest, FewerRows_GiveASmallerBatchOfTheSameMemory) {
  BatchBuffer buffer(Layout(3, 1, {{1, 1}}));
  Sample sample;
  AddView(1, 1, 1, 7, &sample);
  ASSERT_OK(buffer.Write(sample, 0));
  const void* memory = buffer.Finish(3).views[0].const_data_ptr();

  const Batch& batch = buffer.Finish(1);

  EXPECT_EQ(batch.size(), 1);
  EXPECT_EQ(batch.views[0].size(0), 1);
  EXPECT_EQ(batch.targets.size(0), 1);
  EXPECT_EQ(batch.views[0].const_data_ptr(), memory);
}

TEST_F(BatchBufferTest, NoLabels_LeaveTargetsUndefined) {
  BatchLayout layout = Layout(1, 1, {{1, 1}});
  layout.has_labels = false;
  BatchBuffer buffer(layout);
  Sample sample;
  AddView(1, 1, 1, 7, &sample);

  ASSERT_OK(buffer.Write(sample, 0));

  EXPECT_FALSE(buffer.Finish(1).targets.defined());
}

TEST_F(BatchBufferTest, OtherSize_NamesSampleViewAndBothSizes) {
  BatchBuffer buffer(Layout(1, 1, {{2, 2}}));
  Sample sample;
  sample.index = 17;
  AddView(2, 3, 1, 0, &sample);

  EXPECT_THAT(buffer.Write(sample, 0), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("sample 17, view 0 is 3 x 2, expected 2 x 2 (width x")));
}

TEST_F(BatchBufferTest, OtherNumberOfViews_NamesBoth) {
  BatchBuffer buffer(Layout(1, 1, {{1, 1}}));
  Sample sample;
  AddView(1, 1, 1, 0, &sample);
  AddView(1, 1, 1, 0, &sample);

  EXPECT_THAT(buffer.Write(sample, 0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 views, expected 1")));
}

TEST_F(BatchBufferTest, LayoutFor_TakesTheShapesOfTheFirstSample) {
  Sample sample;
  AddView(4, 5, 1, 0, &sample);
  AddView(2, 2, 1, 0, &sample);

  ASSERT_OK_AND_ASSIGN(const BatchLayout layout, LayoutFor(sample, Layout(8, 3, {})));

  EXPECT_EQ(layout.batch_size, 8);
  ASSERT_EQ(layout.views.size(), 2u);
  EXPECT_EQ(layout.views[0].height, 4);
  EXPECT_EQ(layout.views[0].width, 5);
  EXPECT_EQ(layout.views[1].height, 2);
}

TEST_F(BatchBufferTest, LabelRows_BecomeTargetsWithAColumnForEachClass) {
  const std::vector<int64_t> first_row = {1, 0, -1};
  const std::vector<int64_t> second_row = {0, 1, 1};
  Sample sample;
  AddView(1, 1, 1, 0, &sample);
  sample.label_row = first_row;
  BatchLayout layout = Layout(2, 1, {});
  layout.has_labels = true;
  ASSERT_OK_AND_ASSIGN(layout, LayoutFor(sample, layout));
  BatchBuffer buffer(layout);

  ASSERT_OK(buffer.Write(sample, 0));
  sample.label_row = second_row;
  ASSERT_OK(buffer.Write(sample, 1));

  const at::Tensor& targets = buffer.Finish(2).targets;
  ASSERT_EQ(targets.sizes(), (std::vector<int64_t>{2, 3}));
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(targets[0][c].item<int64_t>(), first_row[c]);
    EXPECT_EQ(targets[1][c].item<int64_t>(), second_row[c]);
  }
  sample.label_row = absl::MakeConstSpan(second_row).subspan(1);
  EXPECT_THAT(buffer.Write(sample, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("labels for 2 classes, expected 3")));
}

TEST_F(BatchBufferTest, ListsOfLabels_AreNoTargets) {
  const int64_t list[] = {1, 4};
  Sample sample;
  AddView(1, 1, 1, 0, &sample);
  sample.index = 5;
  sample.label_list = list;
  EXPECT_THAT(LayoutFor(sample, Layout(1, 1, {})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sample 5 has 2 labels, one from each file of LABEL_PATHS; expected OneHotEncode")));
  BatchLayout layout = Layout(1, 1, {});
  layout.has_labels = false;
  EXPECT_OK(LayoutFor(sample, layout));
  BatchBuffer buffer(Layout(1, 1, {{1, 1}}));
  EXPECT_THAT(buffer.Write(sample, 0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 2 labels")));
  const int64_t row[] = {0, 1, 0, 0, 1};
  sample.label_row = row;
  EXPECT_OK(LayoutFor(sample, Layout(1, 1, {})));
}

TEST_F(BatchBufferTest, LayoutFor_WithoutToTensor_SaysSo) {
  Sample sample;
  AddView(1, 1, 1, 0, &sample);
  sample.view(0).table = nullptr;

  EXPECT_THAT(LayoutFor(sample, Layout(1, 3, {})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected ToTensor")));
}

TEST_F(BatchBufferTest, LayoutFor_ColourImageInOneChannel_NamesTheKey) {
  Sample sample;
  AddView(1, 1, 3, 0, &sample);

  EXPECT_THAT(LayoutFor(sample, Layout(1, 1, {})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("3 channels and IMAGE_CHANNELS is 1; expected 3, or Grayscale")));
}

TEST_F(BatchBufferTest, LayoutFor_ThreeMeansInOneChannel_NamesNormalize) {
  const PixelTable three = MakeNormalizeTable({0.1, 0.2, 0.3}, {1, 1, 1});
  Sample sample;
  AddView(1, 1, 1, 0, &sample);
  sample.view(0).table = &three;

  EXPECT_THAT(LayoutFor(sample, Layout(1, 1, {})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Normalize has 3 values")));
}

}  // namespace
}  // namespace ssl
