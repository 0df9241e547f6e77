// SPDX-License-Identifier: Apache-2.0
//
// What the transforms draw for a view, without doing it: into a plan that kernels carry out on a device. Each function
// is given the stream of its transform (TransformContext::Random) and takes the same numbers from it, so that the view
// is the same (draw_view_plan_test). Pure functions.
//
//   ViewPlan plan;
//   CounterRandom crop = context.Random(v);
//   DrawCropPlan(&crop, rule, image, &plan);
#ifndef SSL_DATA_TRANSFORMS_DRAW_VIEW_PLAN_H_
#define SSL_DATA_TRANSFORMS_DRAW_VIEW_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ssl/base/random.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/image.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/random_crop_rule.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

// RandomResizedCrop, or a crop of ImgPilToMultiCrop, of `image`, from whose first byte on the plan counts.
void DrawCropPlan(CounterRandom* random, const RandomCropRule& rule, const Image& image, ViewPlan* plan);

// RandomHorizontalFlip.
void DrawFlipPlan(CounterRandom* random, double probability, ViewPlan* plan);

// The rest add steps: InvalidArgument when the plan has no room for them.

// What DrawColorSteps (color_jitter.h) has drawn: ColorJitter and ImgPilRandomColorJitter.
absl::Status PlanColorSteps(absl::Span<const ColorStep> steps, ViewPlan* plan);

// RandomGrayscale; after the color steps of the same stream, ImgPilColorDistortion, with 0.2.
absl::Status DrawGreyPlan(CounterRandom* random, double probability, ViewPlan* plan);

// ImgPilGaussianBlur. radius: of the standard deviation, in pixels.
absl::Status DrawBlurPlan(CounterRandom* random, double probability, const Interval& radius, ViewPlan* plan);

// ImgPilRandomSolarize.
absl::Status DrawSolarizePlan(CounterRandom* random, double probability, ViewPlan* plan);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_DRAW_VIEW_PLAN_H_
