// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/color_jitter.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ColorJitterOptions : public Options {
  ConfigNode brightness = ConfigNode::FromInt(0);
  ConfigNode contrast = ConfigNode::FromInt(0);
  ConfigNode saturation = ConfigNode::FromInt(0);
  ConfigNode hue = ConfigNode::FromInt(0);
  double p = 1.0;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("brightness", &brightness, Doc("Strength, or [smallest, largest] factor."));
    visitor.Field("contrast", &contrast, Doc("Strength, or [smallest, largest] factor."));
    visitor.Field("saturation", &saturation, Doc("Must be 0: not supported yet."));
    visitor.Field("hue", &hue, Doc("Must be 0: not supported yet."));
    visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0));
  }
};

// Replaces each pixel by its blend with `degenerate`. Pillow computes in float32 and cuts off the fraction.
void BlendWith(int degenerate, double factor, Image* image) {
  const float alpha = static_cast<float>(factor);
  std::array<uint8_t, 256> table;
  for (int pixel = 0; pixel < 256; ++pixel) {
    const float blended = static_cast<float>(degenerate) + alpha * static_cast<float>(pixel - degenerate);
    table[pixel] = static_cast<uint8_t>(std::clamp(blended, 0.0f, 255.0f));
  }
  uint8_t* pixels = image->MutablePixels();
  const int64_t size = image->size_bytes();
  for (int64_t i = 0; i < size; ++i) pixels[i] = table[pixels[i]];
}

// Mean grey value, rounded. A colour counts as Pillow's conversion to L: ITU-R 601-2 luma in 16-bit fixed point.
int MeanGrey(const Image& image) {
  const int64_t count = static_cast<int64_t>(image.height()) * image.width();
  const uint8_t* pixels = image.pixels();
  int64_t sum = 0;
  if (image.channels() == 1) {
    for (int64_t i = 0; i < count; ++i) sum += pixels[i];
  } else {
    for (int64_t i = 0; i < count; ++i, pixels += 3) {
      sum += (pixels[0] * 19595 + pixels[1] * 38470 + pixels[2] * 7471 + 0x8000) >> 16;
    }
  }
  return static_cast<int>(static_cast<double>(sum) / count + 0.5);
}

// A strength b, or a list of two factors.
absl::StatusOr<Interval> ReadFactors(const ConfigNode& entry, absl::string_view key, const ConfigNode& value) {
  Interval factors;
  if (value.is_list() && value.items().size() == 2) {
    SSL_ASSIGN_OR_RETURN(factors.lo, value.items()[0].AsDouble());
    SSL_ASSIGN_OR_RETURN(factors.hi, value.items()[1].AsDouble());
  } else {
    const absl::StatusOr<double> strength = value.AsDouble();
    factors.lo = strength.ok() && *strength >= 0.0 ? std::max(0.0, 1.0 - *strength) : -1.0;
    factors.hi = strength.ok() ? 1.0 + *strength : -1.0;
  }
  if (factors.lo >= 0.0 && factors.lo <= factors.hi) return factors;
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, key), " is ", value.Describe(),
                                                 ", expected a number of at least 0 or two increasing ones"));
}

absl::Status ExpectZero(const ConfigNode& entry, absl::string_view key, const ConfigNode& value) {
  const absl::StatusOr<double> strength = value.AsDouble();
  if (strength.ok() && *strength == 0.0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(TransformKey(entry, key), " is ", value.Describe(), ", expected 0: ", key, " is not supported yet"));
}

}  // namespace

void AdjustBrightness(double factor, Image* image) { BlendWith(0, factor, image); }

void AdjustContrast(double factor, Image* image) { BlendWith(MeanGrey(*image), factor, image); }

void ColorJitter::Jitter(CounterRandom random, Image* image) const {
  if (!random.Bernoulli(strength_.probability)) return;
  const bool contrast_first = random.Bernoulli(0.5);
  const double brightness = random.Uniform(strength_.brightness.lo, strength_.brightness.hi);
  const double contrast = random.Uniform(strength_.contrast.lo, strength_.contrast.hi);
  if (contrast_first) AdjustContrast(contrast, image);
  AdjustBrightness(brightness, image);
  if (!contrast_first) AdjustContrast(contrast, image);
}

absl::Status ColorJitter::Apply(const TransformContext& context, Sample* sample) const {
  for (int v = 0; v < sample->num_views(); ++v) {
    SSL_RETURN_IF_ERROR(CheckPixelsOpen(sample->view(v)));
    Jitter(context.Random(v), &sample->view(v).image);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeColorJitter(const ConfigNode& entry, const BuildContext& context) {
  ColorJitterOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  SSL_RETURN_IF_ERROR(ExpectZero(entry, "saturation", options.saturation));
  SSL_RETURN_IF_ERROR(ExpectZero(entry, "hue", options.hue));
  ColorJitter::Strength strength;
  SSL_ASSIGN_OR_RETURN(strength.brightness, ReadFactors(entry, "brightness", options.brightness));
  SSL_ASSIGN_OR_RETURN(strength.contrast, ReadFactors(entry, "contrast", options.contrast));
  strength.probability = options.p;
  return std::make_unique<ColorJitter>(strength);
}

}  // namespace ssl
