// SPDX-License-Identifier: Apache-2.0
//
// For tests of augmentation on a device: images, plans for views of them (draw_view_plan.h), and the floats that the
// transforms on the host make of the same draws.
#ifndef SSL_DATA_TRANSFORMS_TESTING_PLANNED_VIEWS_H_
#define SSL_DATA_TRANSFORMS_TESTING_PLANNED_VIEWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/data/image/image.h"
#include "ssl/kernels/augment_view.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

struct PlannedViews {
  std::vector<uint8_t> images;  // packed
  std::vector<ViewPlan> plans;  // with places in the result and in the work memory
  std::vector<float> expected;  // the result
  int64_t work_bytes = 0;
  ViewNormalization normalization;
};

// `epochs` times three views of each image, by crops of three kinds, flip, colour distortion, blur and solarize.
absl::StatusOr<PlannedViews> PlanViews(const std::vector<Image>& images, int epochs);

// Decoded files of ssl/data/testdata and images that are grey, very wide, very high, of one pixel, or reduced.
std::vector<Image> ImagesToPlan();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_TESTING_PLANNED_VIEWS_H_
