// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/pixel_view.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/image/pixel_table.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

TEST(PixelViewGolden, ApplyFlipEqualsTorchvisions) {
  RunGolden("image", "hflip", [&](const golden::Case& golden_case) {
    View view;
    view.image = ToImage(golden_case.steps[0].Input("image"));
    view.flipped = true;

    ApplyFlip(&view);

    EXPECT_EQ(LargestDifference(view.image, ToImage(golden_case.steps[0].Expected("image").tensor)), 0);
  });
}

TEST(PixelView, ApplyFlip_MirrorsPixelsNotChannels) {
  for (int channels : {1, 3}) {
    for (int width : {1, 2, 3, 4}) {
      View view;
      uint8_t* pixels = view.image.Allocate(2, width, channels);
      for (int i = 0; i < 2 * width * channels; ++i) pixels[i] = static_cast<uint8_t>(i);
      view.flipped = true;

      ApplyFlip(&view);

      EXPECT_FALSE(view.flipped);
      for (int y = 0; y < 2; ++y) {
        for (int x = 0; x < width; ++x) {
          for (int c = 0; c < channels; ++c) {
            EXPECT_EQ(view.image.row(y)[x * channels + c], (y * width + width - 1 - x) * channels + c);
          }
        }
      }
    }
  }
}

TEST(PixelView, ApplyFlipOfALentImage_WorksOnACopy) {
  const std::vector<uint8_t> pixels = {1, 2, 3};
  View view;
  view.image.Borrow(pixels.data(), 1, 3, 1);

  ApplyFlip(&view);
  EXPECT_EQ(view.image.pixels(), pixels.data());  // not flipped: not touched
  view.flipped = true;
  ApplyFlip(&view);

  EXPECT_EQ(pixels, (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(std::vector<uint8_t>(view.image.pixels(), view.image.pixels() + 3), (std::vector<uint8_t>{3, 2, 1}));
}

TEST(PixelView, PixelsAreOpenUntilToTensor) {
  const PixelTable table = MakeToTensorTable();
  View view;
  EXPECT_OK(CheckPixelsOpen(view));
  view.table = &table;
  EXPECT_THAT(CheckPixelsOpen(view),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("stands after ToTensor")));
}

}  // namespace
}  // namespace ssl
