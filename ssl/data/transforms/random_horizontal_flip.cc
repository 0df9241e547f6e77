// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_horizontal_flip.h"

#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct RandomHorizontalFlipOptions : public Options {
  double p = 0.5;

  void VisitFields(FieldVisitor& visitor) override { visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0)); }
};

}  // namespace

absl::Status RandomHorizontalFlip::ApplyToView(const TransformContext& context, int index, View* view) const {
  if (context.Random(index).Bernoulli(probability_)) view->flipped = !view->flipped;
  return absl::OkStatus();
}

absl::Status RandomHorizontalFlip::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  DrawFlipPlan(&random, probability_, plan);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomHorizontalFlip(const ConfigNode& entry,
                                                                    const BuildContext& context) {
  RandomHorizontalFlipOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<RandomHorizontalFlip>(options.p);
}

std::unique_ptr<Options> MakeRandomHorizontalFlipOptions() { return std::make_unique<RandomHorizontalFlipOptions>(); }

}  // namespace ssl
