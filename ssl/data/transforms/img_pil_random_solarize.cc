// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_random_solarize.h"

#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/photometric.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPilRandomSolarizeOptions : public Options {
  double p = 0.66;

  void VisitFields(FieldVisitor& visitor) override { visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0)); }
};

}  // namespace

absl::Status ImgPilRandomSolarize::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  CounterRandom random = context.Random(index);
  if (random.Bernoulli(probability_)) Solarize(static_cast<int>(random.UniformInt(0, 256)), &view->image);
  return absl::OkStatus();
}

absl::Status ImgPilRandomSolarize::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  return DrawSolarizePlan(&random, probability_, plan);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilRandomSolarize(const ConfigNode& entry,
                                                                    const BuildContext& context) {
  ImgPilRandomSolarizeOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgPilRandomSolarize>(options.p);
}

std::unique_ptr<Options> MakeImgPilRandomSolarizeOptions() { return std::make_unique<ImgPilRandomSolarizeOptions>(); }

}  // namespace ssl
