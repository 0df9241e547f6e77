// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/grayscale.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/adjust.h"
#include "ssl/data/transforms/draw_view_plan.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct GrayscaleOptions : public Options {
  int64_t num_output_channels = 1;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("num_output_channels", &num_output_channels, Doc("1 or 3; a batch repeats grey values as needed."));
  }
};

struct RandomGrayscaleOptions : public Options {
  double p = 0.1;

  void VisitFields(FieldVisitor& visitor) override { visitor.Field("p", &p, Doc("Probability.").Between(0.0, 1.0)); }
};

}  // namespace

absl::Status Grayscale::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  ReduceToGrey(&context.scratch.image, &view->image);
  return absl::OkStatus();
}

absl::Status Grayscale::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  return DrawGreyPlan(&random, 1.0, plan);
}

absl::Status RandomGrayscale::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  if (context.Random(index).Bernoulli(probability_)) ReduceToGrey(&context.scratch.image, &view->image);
  return absl::OkStatus();
}

absl::Status RandomGrayscale::PlanView(const TransformContext& context, int index, ViewPlan* plan) const {
  CounterRandom random = context.Random(index);
  return DrawGreyPlan(&random, probability_, plan);
}

absl::StatusOr<std::unique_ptr<Transform>> MakeGrayscale(const ConfigNode& entry, const BuildContext& context) {
  GrayscaleOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  if (options.num_output_channels != 1 && options.num_output_channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "num_output_channels"), " is ",
                                                   options.num_output_channels, ", expected 1 or 3"));
  }
  return std::make_unique<Grayscale>();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomGrayscale(const ConfigNode& entry, const BuildContext& context) {
  RandomGrayscaleOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<RandomGrayscale>(options.p);
}

std::unique_ptr<Options> MakeGrayscaleOptions() { return std::make_unique<GrayscaleOptions>(); }

std::unique_ptr<Options> MakeRandomGrayscaleOptions() { return std::make_unique<RandomGrayscaleOptions>(); }

}  // namespace ssl
