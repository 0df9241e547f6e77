// SPDX-License-Identifier: Apache-2.0
//
// ColorJitter (torchvision): random brightness and contrast, in random order, with the arithmetic of Pillow's
// ImageEnhance on 8-bit pixels. Parameters: brightness and contrast, each a number b (factor in [max(0, 1 - b), 1 + b])
// or [smallest, largest] factor; p (ours, default 1.0): probability that a view is changed at all. saturation and hue
// must be 0 so far.
#ifndef SSL_DATA_TRANSFORMS_COLOR_JITTER_H_
#define SSL_DATA_TRANSFORMS_COLOR_JITTER_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/crop_box.h"
#include "ssl/data/transform.h"

namespace ssl {

// Every pixel becomes black + factor * (pixel - black), cut to 0 ... 255. factor >= 0.
void AdjustBrightness(double factor, Image* image);
// The same, from the mean of the picture's grey values instead of black.
void AdjustContrast(double factor, Image* image);

class ColorJitter : public Transform {
 public:
  struct Strength {
    Interval brightness = {1.0, 1.0};  // of the factor; 1: unchanged
    Interval contrast = {1.0, 1.0};
    double probability = 1.0;
  };

  explicit ColorJitter(const Strength& strength) : strength_(strength) {}

  absl::string_view name() const override { return "ColorJitter"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;

 private:
  void Jitter(CounterRandom random, Image* image) const;

  Strength strength_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeColorJitter(const ConfigNode& entry, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_COLOR_JITTER_H_
