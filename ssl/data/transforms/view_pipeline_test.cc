// SPDX-License-Identifier: Apache-2.0
//
// The whole way of one view, as torchvision and Pillow go it: crop, flip, jitter, grey, blur.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/resample.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/gaussian_blur.h"
#include "ssl/data/transforms/pixel_view.h"

namespace ssl {
namespace {

// A grey image with its values repeated in three channels, as a batch would hold it.
Image InColour(const Image& image) {
  if (image.channels() == 3) return image;
  Image colour;
  uint8_t* pixels = colour.Allocate(image.height(), image.width(), 3);
  for (int64_t i = 0; i < colour.size_bytes(); ++i) pixels[i] = image.pixels()[i / 3];
  return colour;
}

TEST(ViewPipelineGolden, EqualsTorchvisionsInEveryPixel) {
  const std::array<void (*)(double, Image*), 4> adjust = {AdjustBrightness, AdjustContrast, AdjustSaturation,
                                                          AdjustHue};
  const std::array<std::string, 4> names = {"brightness", "contrast", "saturation", "hue"};
  Resampler resampler;
  BlurBuffers buffers;
  RunGolden("image", "view_pipeline", [&](const golden::Case& golden_case) {
    View view;
    const Extent size = SizeOf(golden_case);
    const Image source = ToImage(golden_case.steps[0].Input("image"));
    resampler.CropAndResize(source, BoxOf(golden_case, source), size.height, size.width, &view.image);
    view.flipped = golden_case.Flag("flip");
    for (int64_t i : golden_case.Ints("order")) adjust.at(i)(golden_case.DoubleIn(names.at(i), -0.5, 1e6), &view.image);
    Image scratch;
    if (golden_case.Flag("grayscale")) ReduceToGrey(&scratch, &view.image);
    GaussianBlur(static_cast<float>(golden_case.DoubleIn("blur_radius", 0.0, 100.0)), &buffers, &view.image);
    ApplyFlip(&view);

    const Image expected = ToImage(golden_case.steps[0].Expected("image").tensor);
    EXPECT_EQ(LargestDifference(InColour(view.image), expected), 0);
  });
}

}  // namespace
}  // namespace ssl
