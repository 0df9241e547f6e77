// SPDX-License-Identifier: Apache-2.0
//
// Writing samples into a batch, on many shapes drawn from a seed, against a loop over single values.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "gtest/gtest.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/loader/batch_buffer.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20251123;

int Draw(std::mt19937_64* random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(*random);
}

// A sample with `views` views of the layout's shapes; grey ones among them.
Sample DrawSample(std::mt19937_64* random, const BatchLayout& layout, const PixelTable* table, int64_t index) {
  Sample sample;
  sample.SetNumViews(static_cast<int>(layout.views.size()));
  sample.index = index;
  for (size_t v = 0; v < layout.views.size(); ++v) {
    View& view = sample.view(static_cast<int>(v));
    const int channels = layout.channels == 3 && Draw(random, 0, 1) == 1 ? 3 : 1;
    uint8_t* pixels = view.image.Allocate(layout.views[v].height, layout.views[v].width, channels);
    std::generate_n(pixels, view.image.size_bytes(), [&] { return static_cast<uint8_t>(Draw(random, 0, 255)); });
    view.flipped = Draw(random, 0, 1) == 1;
    view.table = table;
  }
  return sample;
}

float ExpectedValue(const View& view, int c, int y, int x) {
  const int column = view.flipped ? view.image.width() - 1 - x : x;
  const int channels = view.image.channels();
  return view.table->values[view.image.row(y)[column * channels + (channels == 3 ? c : 0)]][c];
}

void CheckView(const at::Tensor& batch, int64_t row, const View& view) {
  const at::Tensor rows = batch.permute({0, 2, 3, 1});  // as it lies in memory
  ASSERT_TRUE(rows.is_contiguous());
  const int64_t channels = batch.size(1);
  const float* values = rows.data_ptr<float>() + row * view.image.height() * view.image.width() * channels;
  for (int y = 0; y < view.image.height(); ++y) {
    for (int x = 0; x < view.image.width(); ++x) {
      for (int c = 0; c < channels; ++c, ++values) {
        ASSERT_EQ(*values, ExpectedValue(view, c, y, x)) << "row " << row << ", " << c << ", " << y << ", " << x;
      }
    }
  }
}

TEST(BatchBufferShapes, DrawnBatches_HoldEveryValueAtItsPlace) {
  std::mt19937_64 random(kSeed);
  const PixelTable one_rule = MakeToTensorTable();
  const PixelTable three_rules = MakeNormalizeTable({0.1, 0.5, 0.9}, {0.2, 0.3, 0.7});
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) {
    BatchLayout layout;
    layout.batch_size = Draw(&random, 1, 70);
    layout.channels = Draw(&random, 0, 1) == 1 ? 3 : 1;
    layout.views.resize(Draw(&random, 1, 4));
    for (ViewShape& shape : layout.views) shape = {Draw(&random, 1, 37), Draw(&random, 1, 37)};
    const PixelTable* table = layout.channels == 3 && i % 2 == 0 ? &three_rules : &one_rule;
    BatchBuffer buffer(layout);
    std::vector<Sample> samples;
    for (int64_t row = 0; row < layout.batch_size; ++row) {
      samples.push_back(DrawSample(&random, layout, table, 100 + row));
      ASSERT_OK(buffer.Write(samples.back(), row));
    }
    const Batch& batch = buffer.Finish(layout.batch_size);
    for (int64_t row = 0; row < layout.batch_size; ++row) {
      for (size_t v = 0; v < layout.views.size(); ++v) CheckView(batch.views[v], row, samples[row].view(v));
      EXPECT_EQ(batch.indices[row].item<int64_t>(), 100 + row);
    }
  }
}

}  // namespace
}  // namespace ssl
