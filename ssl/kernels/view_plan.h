// SPDX-License-Identifier: Apache-2.0
//
// What is to be done to one decoded image to make one view of it: a crop, scaled, then steps on its pixels, then
// floats. Drawn on the host (ssl/data/transforms/draw_view_plan.h), carried out by augment_view.h. Plain values, that
// are copied to a device as they are.
#ifndef SSL_KERNELS_VIEW_PLAN_H_
#define SSL_KERNELS_VIEW_PLAN_H_

#include <cstdint>

#include "ssl/kernels/host_device.h"

namespace ssl {

// One direction of a resize: `in` pixels, of which the part from begin / reduction on, size / reduction long, becomes
// `out` pixels. Without reduction (an image that was decoded at a fraction of its size) begin is 0 and size is `in`.
struct ResizeAxis {
  int32_t in = 0;
  int32_t out = 0;
  int32_t begin = 0;
  int32_t size = 0;
  int32_t reduction = 1;
};

enum class PixelStepKind : int32_t { kBrightness, kContrast, kSaturation, kHue, kGrey, kBlur, kSolarize };

struct PixelStep {
  PixelStepKind kind = PixelStepKind::kGrey;
  float factor = 0.0f;       // of brightness, contrast and saturation
  int32_t amount = 0;        // kHue: of 255 that are the wheel; kSolarize: the threshold; kBlur: the box's radius
  uint32_t weight = 0;       // kBlur: as BlurBox (ssl/data/transforms/gaussian_blur.h)
  uint32_t edge_weight = 0;  // likewise
};

struct ViewPlan {
  static constexpr int kMostSteps = 8;

  // The crop in the packed images: its first byte, the distance of rows in bytes, and 1 or 3 channels.
  int64_t source_begin = 0;
  int64_t source_stride = 0;
  int32_t source_channels = 3;
  ResizeAxis rows;     // from the crop's height to the view's
  ResizeAxis columns;  // from its width
  bool bicubic = false;
  bool rows_first = false;  // which pass comes first is a part of the result
  bool flipped = false;     // mirrored, left and right, at last
  int32_t num_steps = 0;
  PixelStep steps[kMostSteps];
  // Where the view's values begin in the result, [height, width, 3].
  int64_t result_begin = 0;
  // Where its work begins in the work memory: ViewWorkBytes of it.
  int64_t work_begin = 0;

  SSL_HOST_DEVICE int64_t num_pixels() const { return static_cast<int64_t>(rows.out) * columns.out; }
};

// The result of the first pass, and twice the view's bytes.
SSL_HOST_DEVICE int64_t ViewWorkBytes(const ViewPlan& plan) {
  const int64_t first_pass = plan.rows_first ? static_cast<int64_t>(plan.rows.out) * plan.columns.in
                                             : static_cast<int64_t>(plan.rows.in) * plan.columns.out;
  return 3 * (first_pass + 2 * plan.num_pixels());
}

}  // namespace ssl

#endif  // SSL_KERNELS_VIEW_PLAN_H_
