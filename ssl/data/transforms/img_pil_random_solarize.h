// SPDX-License-Identifier: Apache-2.0
//
// ImgPilRandomSolarize (VISSL; BYOL, https://arxiv.org/abs/2006.07733): with probability p (0.66), inverts the values
// from a random threshold on, a whole number in [0, 256].
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_RANDOM_SOLARIZE_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_RANDOM_SOLARIZE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class ImgPilRandomSolarize final : public ViewTransform, public StepPlanner {
 public:
  explicit ImgPilRandomSolarize(double probability) : probability_(probability) {}

  absl::string_view name() const override { return "ImgPilRandomSolarize"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  int most_steps() const override { return 1; }

 private:
  double probability_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilRandomSolarize(const ConfigNode& entry,
                                                                    const BuildContext& context);
std::unique_ptr<Options> MakeImgPilRandomSolarizeOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_RANDOM_SOLARIZE_H_
