// SPDX-License-Identifier: Apache-2.0
//
// Grayscale (torchvision): turns views grey. Parameter: num_output_channels (1 or 3).
// RandomGrayscale (torchvision): the same with probability p (0.1).
//
// A grey view has one channel from here on, for any num_output_channels: a batch repeats it in all its channels.
#ifndef SSL_DATA_TRANSFORMS_GRAYSCALE_H_
#define SSL_DATA_TRANSFORMS_GRAYSCALE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {

class Grayscale final : public ViewTransform, public StepPlanner {
 public:
  absl::string_view name() const override { return "Grayscale"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  int most_steps() const override { return 1; }
};

class RandomGrayscale final : public ViewTransform, public StepPlanner {
 public:
  explicit RandomGrayscale(double probability) : probability_(probability) {}

  absl::string_view name() const override { return "RandomGrayscale"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;
  absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const override;
  int most_steps() const override { return 1; }

 private:
  double probability_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeGrayscale(const ConfigNode& entry, const BuildContext& context);
absl::StatusOr<std::unique_ptr<Transform>> MakeRandomGrayscale(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeGrayscaleOptions();
std::unique_ptr<Options> MakeRandomGrayscaleOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_GRAYSCALE_H_
