// SPDX-License-Identifier: Apache-2.0
//
// What the transforms draw for a view, without doing it: into a plan that kernels carry out on a device. Each function
// is given the stream of its transform (TransformContext::Random) and takes the same numbers from it, so that the view
// is the same (draw_view_plan_test). Pure functions.
//
//   ViewPlan plan;
//   CounterRandom crop = context.Random(v);
//   DrawCropPlan(&crop, rule, image, image_begin, &plan);
#ifndef SSL_DATA_TRANSFORMS_DRAW_VIEW_PLAN_H_
#define SSL_DATA_TRANSFORMS_DRAW_VIEW_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ssl/base/random.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/image.h"
#include "ssl/data/transforms/color_jitter.h"
#include "ssl/data/transforms/random_resized_crop.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

// RandomResizedCrop, or a crop of ImgPilToMultiCrop, of `image`, whose bytes begin at image_begin of the packed images.
void DrawCropPlan(CounterRandom* random, const RandomCropRule& rule, const Image& image, int64_t image_begin,
                  ViewPlan* plan);

// RandomHorizontalFlip.
void DrawFlipPlan(CounterRandom* random, double probability, ViewPlan* plan);

// The rest add steps: InvalidArgument when the plan has no room for them.

// ColorJitter and ImgPilRandomColorJitter.
absl::Status DrawColorPlan(CounterRandom* random, const ColorJitter::Strength& strength, ViewPlan* plan);

// RandomGrayscale; after DrawColorPlan of the same stream, ImgPilColorDistortion, with 0.2.
absl::Status DrawGreyPlan(CounterRandom* random, double probability, ViewPlan* plan);

// ImgPilGaussianBlur. radius: of the standard deviation, in pixels.
absl::Status DrawBlurPlan(CounterRandom* random, double probability, const Interval& radius, ViewPlan* plan);

// ImgPilRandomSolarize.
absl::Status DrawSolarizePlan(CounterRandom* random, double probability, ViewPlan* plan);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_DRAW_VIEW_PLAN_H_
