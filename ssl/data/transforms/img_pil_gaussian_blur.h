// SPDX-License-Identifier: Apache-2.0
//
// ImgPilGaussianBlur (VISSL; SimCLR, https://arxiv.org/abs/2002.05709, appendix A): with probability p (0.5), Pillow's
// GaussianBlur with a standard deviation drawn between radius_min (0.1) and radius_max (2.0) pixels.
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_GAUSSIAN_BLUR_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_GAUSSIAN_BLUR_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class ImgPilGaussianBlur final : public ViewTransform, public StepPlanner {
 public:
  // radius: of the draw, in pixels; 0 <= lo <= hi.
  ImgPilGaussianBlur(double probability, const Interval& radius) : probability_(probability), radius_(radius) {}

  absl::string_view name() const override { return "ImgPilGaussianBlur"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  int most_steps() const override { return 1; }

 private:
  double probability_;
  Interval radius_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilGaussianBlur(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeImgPilGaussianBlurOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_GAUSSIAN_BLUR_H_
