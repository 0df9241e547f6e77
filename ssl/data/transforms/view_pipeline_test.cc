// SPDX-License-Identifier: Apache-2.0
//
// The whole way of one view, as torchvision and Pillow go it: crop, flip, jitter, grey, blur.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/crop_box.h"
#include "ssl/data/resample.h"
#include "ssl/data/sample.h"
#include "ssl/data/testing/golden_cases.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/gaussian_blur.h"
#include "ssl/data/transforms/pixel_view.h"

namespace ssl {
namespace {

CropBox ToBox(const std::vector<int64_t>& box) {
  return {static_cast<int>(box[0]), static_cast<int>(box[1]), static_cast<int>(box[2]), static_cast<int>(box[3])};
}

// A grey picture with its values repeated in three channels, as a batch would hold it.
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
  for (const golden::Case& golden_case : GoldenCases("image", "view_pipeline")) {
    SCOPED_TRACE(golden_case.name);
    View view;
    const std::vector<int64_t> size = golden_case.Ints("size");
    resampler.CropAndResize(ToImage(golden_case.steps[0].inputs.at("image")), ToBox(golden_case.Ints("box")),
                            static_cast<int>(size[0]), static_cast<int>(size[1]), &view.image);
    view.flipped = golden_case.params.Find("flip")->AsBool().value();
    for (int64_t i : golden_case.Ints("order")) adjust[i](golden_case.Double(names[i]), &view.image);
    Image scratch;
    if (golden_case.params.Find("grayscale")->AsBool().value()) ReduceToGrey(&scratch, &view.image);
    GaussianBlur(static_cast<float>(golden_case.Double("blur_radius")), &buffers, &view.image);
    ApplyFlip(&view);

    const Image expected = ToImage(golden_case.steps[0].outputs.at("image").tensor);
    EXPECT_EQ(LargestDifference(InColour(view.image), expected), 0);
  }
}

}  // namespace
}  // namespace ssl
