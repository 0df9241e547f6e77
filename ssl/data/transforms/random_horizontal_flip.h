// SPDX-License-Identifier: Apache-2.0
//
// RandomHorizontalFlip (torchvision): mirrors each view with probability p (0.5). The mirroring is noted and happens
// when the view is written into the batch.
#ifndef SSL_DATA_TRANSFORMS_RANDOM_HORIZONTAL_FLIP_H_
#define SSL_DATA_TRANSFORMS_RANDOM_HORIZONTAL_FLIP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class RandomHorizontalFlip final : public ViewTransform, public StepPlanner {
 public:
  explicit RandomHorizontalFlip(double probability) : probability_(probability) {}

  absl::string_view name() const override { return "RandomHorizontalFlip"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;

 private:
  double probability_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomHorizontalFlip(const ConfigNode& entry,
                                                                    const BuildContext& context);
std::unique_ptr<Options> MakeRandomHorizontalFlipOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RANDOM_HORIZONTAL_FLIP_H_
