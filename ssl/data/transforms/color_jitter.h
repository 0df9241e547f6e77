// SPDX-License-Identifier: Apache-2.0
//
// ColorJitter (torchvision): random brightness, contrast, saturation and hue, in random order, with Pillow's arithmetic
// on 8-bit pixels (adjust.h). Parameters: brightness, contrast and saturation, each a number b (factor in
// [max(0, 1 - b), 1 + b]) or [smallest, largest] factor; hue, a number h (part of the colour wheel in [-h, h]) or
// [smallest, largest] part within [-0.5, 0.5]; p (ours, default 1.0): probability that a view is changed at all.
// Saturation and hue leave grey images as they are.
#ifndef SSL_DATA_TRANSFORMS_COLOR_JITTER_H_
#define SSL_DATA_TRANSFORMS_COLOR_JITTER_H_

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ssl/base/random.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class ColorJitter final : public ViewTransform, public StepPlanner {
 public:
  // An adjustment whose interval holds its neutral value alone is left out.
  struct Strength {
    Interval brightness = {1.0, 1.0};  // of the factor; 1: unchanged
    Interval contrast = {1.0, 1.0};
    Interval saturation = {1.0, 1.0};
    Interval hue = {0.0, 0.0};  // of the part of the colour wheel; 0: unchanged
    double probability = 1.0;
  };

  explicit ColorJitter(const Strength& strength) : strength_(strength) {}

  absl::string_view name() const override { return "ColorJitter"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  int most_steps() const override { return 4; }

 private:
  Strength strength_;
};

// What ColorJitter draws for one image, into `steps`, in the order in which it is done; none: the image stays.
absl::Span<const ColorStep> DrawColorSteps(const ColorJitter::Strength& strength, CounterRandom* random,
                                           std::array<ColorStep, 4>* steps);

// What ColorJitter does to one image.
void JitterColors(const ColorJitter::Strength& strength, CounterRandom* random, Image* image);

// The same as steps of a plan. InvalidArgument when it has no room for them.
absl::Status DrawColorPlan(const ColorJitter::Strength& strength, CounterRandom* random, ViewPlan* plan);

// Brightness, contrast and saturation by 0.8 * strength and hue by 0.2 * strength, as in SimCLR
// (https://arxiv.org/abs/2002.05709, appendix A). strength in [0, 2.5].
ColorJitter::Strength ScaledColorJitter(double strength, double probability);

absl::StatusOr<std::unique_ptr<Transform>> MakeColorJitter(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeColorJitterOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_COLOR_JITTER_H_
