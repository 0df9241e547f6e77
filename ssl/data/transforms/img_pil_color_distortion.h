// SPDX-License-Identifier: Apache-2.0
//
// ImgPilColorDistortion (VISSL; SimCLR, https://arxiv.org/abs/2002.05709): colour jitter with probability 0.8, then
// grey with probability 0.2. Parameter: strength (1.0), which scales the jitter.
// ImgPilRandomColorJitter (VISSL): the jitter alone. Parameters: strength (1.0), p (0.8).
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_COLOR_DISTORTION_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_COLOR_DISTORTION_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/color_jitter.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class ImgPilColorDistortion final : public ViewTransform, public StepPlanner {
 public:
  explicit ImgPilColorDistortion(double strength) : jitter_(ScaledColorJitter(strength, 0.8)) {}

  absl::string_view name() const override { return "ImgPilColorDistortion"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  int most_steps() const override { return 5; }

 private:
  ColorJitter::Strength jitter_;
};

class ImgPilRandomColorJitter final : public ViewTransform, public StepPlanner {
 public:
  ImgPilRandomColorJitter(double strength, double probability) : jitter_(ScaledColorJitter(strength, probability)) {}

  absl::string_view name() const override { return "ImgPilRandomColorJitter"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  int most_steps() const override { return 4; }

 private:
  ColorJitter::Strength jitter_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilColorDistortion(const ConfigNode& entry,
                                                                     const BuildContext& context);
absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilRandomColorJitter(const ConfigNode& entry,
                                                                       const BuildContext& context);
std::unique_ptr<Options> MakeImgPilColorDistortionOptions();
std::unique_ptr<Options> MakeImgPilRandomColorJitterOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_COLOR_DISTORTION_H_
