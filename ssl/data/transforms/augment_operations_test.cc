// SPDX-License-Identifier: Apache-2.0
//
// Each operation against the function that it stands for, at the arguments that its level means.
#include "ssl/data/transforms/augment_operations.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/data/image/affine.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/photometric.h"

namespace ssl {
namespace {

using Change = std::function<void(Image*)>;

Image Noise() {
  Image image;
  uint8_t* pixels = image.Allocate(13, 16, 3);
  CounterRandom random(5, 0, 0, 0, 0);
  for (int i = 0; i < 13 * 16 * 3; ++i) pixels[i] = static_cast<uint8_t>(random.UniformInt(20, 230));
  return image;
}

std::string Bytes(const Image& image) {
  return std::string(reinterpret_cast<const char*>(image.pixels()), image.size_bytes());
}

Image Changed(const Change& change) {
  Image image = Noise();
  change(&image);
  return image;
}

// That the operation gives each of the images that `changes` make, and no other, in 64 draws.
void ExpectOneOf(const std::string& name, double level, const std::vector<Change>& changes) {
  SCOPED_TRACE(name);
  std::set<std::string> expected;
  for (const Change& change : changes) expected.insert(Bytes(Changed(change)));
  EXPECT_EQ(expected.size(), changes.size()) << "the cases differ";
  const AugmentOperation* operation = FindAugmentOperation(name);
  ASSERT_NE(operation, nullptr);
  TransformScratch scratch;
  std::set<std::string> found;
  for (uint64_t sample = 0; sample < 64; ++sample) {
    CounterRandom random(1, 0, sample, 0, 0);
    Image image = Noise();
    ApplyAugmentStep({operation, /*probability=*/1.0, level, /*magnitude_std=*/0.0}, random, scratch, &image);
    found.insert(Bytes(image));
  }
  EXPECT_TRUE(found == expected);
}

// Both directions with both interpolations.
std::vector<Change> Moves(const std::function<AffineMap(double)>& map, double amount) {
  std::vector<Change> changes;
  for (const double signed_amount : {amount, -amount}) {
    for (const AffineSampling sampling : {AffineSampling::kBilinear, AffineSampling::kBicubic}) {
      changes.push_back([=](Image* image) {
        const Image source = Noise();
        TransformAffine(source, map(signed_amount), sampling, 128, image);
      });
    }
  }
  return changes;
}

TEST(AugmentOperations, MovesHaveTheirRanges) {
  ExpectOneOf("ShearX", 5, Moves([](double v) { return AffineMap{1, v, 0, 0, 1, 0}; }, 5 / 10.0 * 0.3));
  ExpectOneOf("ShearY", 9, Moves([](double v) { return AffineMap{1, 0, 0, v, 1, 0}; }, 9 / 10.0 * 0.3));
  ExpectOneOf("TranslateXRel", 4, Moves([](double v) { return AffineMap{1, 0, v, 0, 1, 0}; }, 4 / 10.0 * 0.45 * 16));
  ExpectOneOf("TranslateYRel", 3, Moves([](double v) { return AffineMap{1, 0, 0, 0, 1, v}; }, 3 / 10.0 * 0.45 * 13));
  ExpectOneOf("Rotate", 9, Moves([](double v) { return RotationMap(13, 16, v); }, 27.0));
}

TEST(AugmentOperations, ColoursHaveTheirRanges) {
  const auto sharpen = [](double factor) {
    return [factor](Image* image) {
      Image scratch;
      AdjustSharpness(factor, &scratch, image);
    };
  };
  ExpectOneOf("Brightness", 5, {[](Image* image) { AdjustBrightness(1.0, image); }});
  ExpectOneOf("Contrast", 0, {[](Image* image) { AdjustContrast(0.1, image); }});
  ExpectOneOf("Color", 10, {[](Image* image) { AdjustSaturation(1.9, image); }});
  ExpectOneOf("Sharpness", 10, {sharpen(1.9)});
  ExpectOneOf(
      "BrightnessIncreasing", 5,
      {[](Image* image) { AdjustBrightness(1.45, image); }, [](Image* image) { AdjustBrightness(0.55, image); }});
  ExpectOneOf("ContrastIncreasing", 5,
              {[](Image* image) { AdjustContrast(1.45, image); }, [](Image* image) { AdjustContrast(0.55, image); }});
  ExpectOneOf(
      "ColorIncreasing", 5,
      {[](Image* image) { AdjustSaturation(1.45, image); }, [](Image* image) { AdjustSaturation(0.55, image); }});
  ExpectOneOf("SharpnessIncreasing", 5, {sharpen(1.45), sharpen(0.55)});
}

TEST(AugmentOperations, LevelsHaveTheirRanges) {
  ExpectOneOf("AutoContrast", 3, {[](Image* image) { AutoContrast(image); }});
  ExpectOneOf("Equalize", 3, {[](Image* image) { Equalize(image); }});
  ExpectOneOf("Invert", 3, {[](Image* image) { Invert(image); }});
  ExpectOneOf("Posterize", 8, {[](Image* image) { Posterize(3, image); }});
  ExpectOneOf("Posterize", 2, {[](Image* image) { AdjustBrightness(0.0, image); }});  // no bit is left
  ExpectOneOf("PosterizeIncreasing", 8, {[](Image* image) { Posterize(1, image); }});
  ExpectOneOf("PosterizeOriginal", 8, {[](Image* image) { Posterize(7, image); }});
  ExpectOneOf("Solarize", 3, {[](Image* image) { Solarize(76, image); }});
  ExpectOneOf("SolarizeIncreasing", 3, {[](Image* image) { Solarize(180, image); }});
  ExpectOneOf("SolarizeAdd", 10, {[](Image* image) { SolarizeAdd(110, image); }});
}

TEST(AugmentOperations, UnknownName_IsNull) { EXPECT_EQ(FindAugmentOperation("Cutout"), nullptr); }

// How often a step changes the image, and how many different images come out.
std::pair<int, size_t> Outcomes(const AugmentStep& step) {
  TransformScratch scratch;
  int changed = 0;
  std::set<std::string> images;
  for (uint64_t sample = 0; sample < 400; ++sample) {
    CounterRandom random(1, 0, sample, 0, 0);
    Image image = Noise();
    ApplyAugmentStep(step, random, scratch, &image);
    changed += Bytes(image) != Bytes(Noise()) ? 1 : 0;
    images.insert(Bytes(image));
  }
  return {changed, images.size()};
}

TEST(AugmentOperations, ProbabilitySaysHowOften) {
  const AugmentOperation* invert = FindAugmentOperation("Invert");
  EXPECT_EQ(Outcomes({invert, 0.0, 10.0, 0.0}).first, 0);
  EXPECT_NEAR(Outcomes({invert, 0.25, 10.0, 0.0}).first, 100, 43);  // five standard deviations
}

TEST(AugmentOperations, SpreadOfMagnitude_GivesManyLevelsAndIsCut) {
  const AugmentOperation* solarize = FindAugmentOperation("Solarize");
  EXPECT_EQ(Outcomes({solarize, 1.0, 5.0, 0.0}).second, 1u);
  EXPECT_GT(Outcomes({solarize, 1.0, 5.0, 0.5}).second, 20u);
  // A level beyond 10 is 10, which changes nothing.
  EXPECT_EQ(Outcomes({solarize, 1.0, 1e9, 0.5}).first, 0);
}

}  // namespace
}  // namespace ssl
