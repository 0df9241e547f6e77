// SPDX-License-Identifier: Apache-2.0
//
// Every loop over pixels of the transforms, on many shapes drawn from a seed. What works on each pixel alone is
// compared with itself on images of one pixel (whose values adjust_test and photometric_test check), the rest with
// the definition.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/crop_image.h"
#include "ssl/data/transforms/gaussian_blur.h"
#include "ssl/data/transforms/photometric.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/testing/transform_test_util.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 20251124;
constexpr int kShapes = 80;

int Draw(std::mt19937_64* random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(*random);
}

Image DrawImage(std::mt19937_64* random) {
  Image image;
  const int most = Draw(random, 0, 4) == 0 ? 200 : 40;
  const int height = Draw(random, 1, most);
  const int width = Draw(random, 1, most);
  uint8_t* pixels = image.Allocate(height, width, Draw(random, 0, 2) == 0 ? 1 : 3);
  std::generate_n(pixels, image.size_bytes(), [&] { return static_cast<uint8_t>(Draw(random, 0, 255)); });
  return image;
}

Image CopyOf(const Image& image) {
  Image copy;
  copy.CopyFrom(image);
  return copy;
}

// Value at a place; places outside repeat the border.
int At(const Image& image, int y, int x, int c) {
  y = std::clamp(y, 0, image.height() - 1);
  x = std::clamp(x, 0, image.width() - 1);
  return image.row(y)[x * image.channels() + c];
}

using PixelFunction = std::function<int(const Image& source, int y, int x, int c)>;

void ExpectPixels(const Image& result, const Image& source, const PixelFunction& expected) {
  SCOPED_TRACE(::testing::Message() << source.height() << " x " << source.width() << " x " << source.channels());
  for (int y = 0; y < result.height(); ++y) {
    for (int x = 0; x < result.width(); ++x) {
      for (int c = 0; c < result.channels(); ++c) {
        ASSERT_EQ(At(result, y, x, c), expected(source, y, x, c)) << y << ", " << x << ", " << c;
      }
    }
  }
}

struct PixelOperation {
  std::string name;
  std::function<void(Image* image)> apply;
};

class PixelShapes : public ::testing::TestWithParam<PixelOperation> {};

TEST_P(PixelShapes, EveryPixel_ChangesAsIfItWereAlone) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const Image source = DrawImage(&random);
    Image result = CopyOf(source);
    GetParam().apply(&result);
    ExpectPixels(result, source, [](const Image& image, int y, int x, int c) {
      Image alone;
      std::copy_n(image.row(y) + x * image.channels(), image.channels(), alone.Allocate(1, 1, image.channels()));
      GetParam().apply(&alone);
      return alone.pixels()[c];
    });
  }
}

void MakeGrey(Image* image) {
  Image scratch;
  ReduceToGrey(&scratch, image);
}

INSTANTIATE_TEST_SUITE_P(
    All, PixelShapes,
    ::testing::Values(PixelOperation{"Brightness", [](Image* image) { AdjustBrightness(1.3, image); }},
                      PixelOperation{"Saturation", [](Image* image) { AdjustSaturation(0.4, image); }},
                      PixelOperation{"Hue", [](Image* image) { AdjustHue(0.21, image); }},
                      PixelOperation{"Grey", MakeGrey},
                      PixelOperation{"Solarize", [](Image* image) { Solarize(100, image); }},
                      PixelOperation{"Posterize", [](Image* image) { Posterize(3, image); }}),
    [](const ::testing::TestParamInfo<PixelOperation>& info) { return info.param.name; });

TEST(NeighbourhoodShapes, Contrast_BlendsWithTheRoundedMeanGrey) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const Image source = DrawImage(&random);
    double sum = 0.0;
    for (int y = 0; y < source.height(); ++y) {
      for (int x = 0; x < source.width(); ++x) {
        sum +=
            source.channels() == 1
                ? At(source, y, x, 0)
                : (At(source, y, x, 0) * 19595 + At(source, y, x, 1) * 38470 + At(source, y, x, 2) * 7471 + 0x8000) >>
                      16;
      }
    }
    const int mean = static_cast<int>(sum / source.height() / source.width() + 0.5);
    Image result = CopyOf(source);
    AdjustContrast(1.5, &result);
    ExpectPixels(result, source, [mean](const Image& image, int y, int x, int c) {
      return std::clamp(static_cast<int>(mean + 1.5f * static_cast<float>(At(image, y, x, c) - mean)), 0, 255);
    });
  }
}

TEST(NeighbourhoodShapes, ChainOfColorSteps_EqualsOneStepAfterTheOther) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const Image source = DrawImage(&random);
    std::vector<ColorStep> steps;
    for (int count = Draw(&random, 0, 6); count > 0; --count) {
      const auto adjustment = static_cast<ColorAdjustment>(Draw(&random, 0, 3));
      steps.push_back({adjustment, 0.01 * Draw(&random, 0, adjustment == ColorAdjustment::kHue ? 50 : 200)});
    }
    Image result = CopyOf(source);
    AdjustColors(steps, &result);
    Image expected = CopyOf(source);
    for (const ColorStep& step : steps) AdjustColors({step}, &expected);
    ExpectPixels(result, source, [&](const Image&, int y, int x, int c) { return At(expected, y, x, c); });
  }
}

// One pass of the box along one axis, from its definition.
Image NaiveBox(const Image& source, const BlurBox& box, int dy, int dx) {
  Image result;
  uint8_t* output = result.Allocate(source.height(), source.width(), source.channels());
  for (int y = 0; y < source.height(); ++y) {
    for (int x = 0; x < source.width(); ++x) {
      for (int c = 0; c < source.channels(); ++c) {
        uint64_t inner = 0;
        for (int t = -box.radius; t <= box.radius; ++t) inner += At(source, y + t * dy, x + t * dx, c);
        const int edge = box.radius + 1;
        const uint64_t outer =
            At(source, y - edge * dy, x - edge * dx, c) + At(source, y + edge * dy, x + edge * dx, c);
        *output++ = static_cast<uint8_t>((box.weight * inner + box.edge_weight * outer + (1u << 23)) >> 24);
      }
    }
  }
  return result;
}

TEST(NeighbourhoodShapes, Blur_IsThreeBoxesAlongEachAxis) {
  std::mt19937_64 random(kSeed);
  BlurBuffers buffers;
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const float sigma = std::uniform_real_distribution<float>(0.0f, i % 7 == 0 ? 30.0f : 2.0f)(random);
    const Image source = DrawImage(&random);
    Image result = CopyOf(source);
    GaussianBlur(sigma, &buffers, &result);
    Image expected = CopyOf(source);
    for (int pass = 0; pass < 3; ++pass) expected = NaiveBox(expected, BlurBoxFor(sigma), 0, 1);
    for (int pass = 0; pass < 3; ++pass) expected = NaiveBox(expected, BlurBoxFor(sigma), 1, 0);
    SCOPED_TRACE(::testing::Message() << "sigma " << sigma);
    ExpectPixels(result, source, [&](const Image&, int y, int x, int c) { return At(expected, y, x, c); });
  }
}

TEST(NeighbourhoodShapes, Sharpness_BlendsWithTheSmoothedPixelInside) {
  std::mt19937_64 random(kSeed);
  Image scratch;
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const Image source = DrawImage(&random);
    Image result = CopyOf(source);
    AdjustSharpness(1.75, &scratch, &result);
    ExpectPixels(result, source, [](const Image& image, int y, int x, int c) {
      const int pixel = At(image, y, x, c);
      if (y == 0 || x == 0 || y == image.height() - 1 || x == image.width() - 1) return pixel;
      int sum = 4 * pixel;
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) sum += At(image, y + dy, x + dx, c);
      }
      const int smooth = static_cast<int>(sum / 13.0 + 0.5);
      return std::clamp(static_cast<int>(smooth + 1.75f * static_cast<float>(pixel - smooth)), 0, 255);
    });
  }
}

TEST(NeighbourhoodShapes, AutoContrast_StretchesEachChannel) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const Image source = DrawImage(&random);
    std::vector<int> lo(source.channels(), 255), hi(source.channels(), 0);
    for (int64_t at = 0; at < source.size_bytes(); ++at) {
      lo[at % source.channels()] = std::min<int>(lo[at % source.channels()], source.pixels()[at]);
      hi[at % source.channels()] = std::max<int>(hi[at % source.channels()], source.pixels()[at]);
    }
    Image result = CopyOf(source);
    AutoContrast(&result);
    ExpectPixels(result, source, [&](const Image& image, int y, int x, int c) {
      const int pixel = At(image, y, x, c);
      const double scale = 255.0 / (hi[c] - lo[c]);
      return hi[c] <= lo[c] ? pixel : std::clamp(static_cast<int>(pixel * scale - lo[c] * scale), 0, 255);
    });
  }
}

TEST(NeighbourhoodShapes, Crop_TakesTheBoxAndBlackAroundTheImage) {
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const Image source = DrawImage(&random);
    const CropBox box = {Draw(&random, -50, 210), Draw(&random, -50, 210), Draw(&random, 1, 99), Draw(&random, 1, 99)};
    Image result;
    CropImage(source, box, &result);
    ASSERT_EQ(result.height(), box.height);
    ASSERT_EQ(result.width(), box.width);
    ExpectPixels(result, source, [&box](const Image& image, int y, int x, int c) {
      const int row = y + box.top;
      const int column = x + box.left;
      const bool inside = row >= 0 && column >= 0 && row < image.height() && column < image.width();
      return inside ? At(image, row, column, c) : 0;
    });
  }
}

TEST(NeighbourhoodShapes, Flips_MirrorRowsAndColumns) {
  std::mt19937_64 random(kSeed);
  ASSERT_OK_AND_ASSIGN(const auto vertical, MakeTransform("name: RandomVerticalFlip\np: 1.0"));
  for (int i = 0; i < kShapes && !HasFatalFailure(); ++i) {
    const Image source = DrawImage(&random);
    Sample sample;
    sample.SetNumViews(1);
    View& view = sample.view(0);
    view.image.CopyFrom(source);
    view.flipped = true;
    ApplyFlip(&view);
    ASSERT_OK(ApplyTransform(*vertical, &sample));
    ExpectPixels(view.image, source, [](const Image& image, int y, int x, int c) {
      return At(image, image.height() - 1 - y, image.width() - 1 - x, c);
    });
  }
}

}  // namespace
}  // namespace ssl
