// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_multi_crop_random_apply.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/transforms/transform_list.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPilMultiCropRandomApplyOptions : public Options {
  ConfigNode transforms;
  std::vector<double> prob;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("transforms", &transforms, Doc("Applied one after the other."));
    visitor.Field("prob", &prob, Doc("Probability for each view.").Between(0.0, 1.0));
  }
};

}  // namespace

absl::Status ImgPilMultiCropRandomApply::Apply(const TransformContext& context, Sample* sample) const {
  if (static_cast<size_t>(sample->num_views()) != probabilities_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("prob has ", probabilities_.size(), " entries, expected ",
                                                   sample->num_views(), ", the number of views"));
  }
  for (int v = 0; v < sample->num_views(); ++v) {
    if (!context.Random(v).Bernoulli(probabilities_[v])) continue;
    for (size_t i = 0; i < transforms_.size(); ++i) {
      const absl::Status status =
          transforms_[i]->as_view_transform()->ApplyToView(context.Nested(i), v, &sample->view(v));
      if (!status.ok()) return Annotate(status, transforms_[i]->name());
    }
  }
  return absl::OkStatus();
}

FloatRule ImgPilMultiCropRandomApply::float_rule() const {
  const bool changes_pixels_alone = std::all_of(transforms_.begin(), transforms_.end(), [](const auto& transform) {
    return transform->float_rule() == FloatRule::kNone;
  });
  return changes_pixels_alone ? FloatRule::kNone : FloatRule::kByChance;
}

bool ImgPilMultiCropRandomApply::has_plans() const {
  return std::all_of(transforms_.begin(), transforms_.end(),
                     [](const auto& transform) { return StepPlannerOf(*transform) != nullptr; });
}

absl::Status ImgPilMultiCropRandomApply::Plan(const TransformContext& context, const Image&,
                                              std::vector<ViewPlan>* plans) const {
  SSL_RETURN_IF_ERROR(CheckCropped(*plans));
  for (size_t v = 0; v < plans->size(); ++v) {
    const int index = static_cast<int>(v);
    if (!context.Random(index).Bernoulli(probabilities_.at(v))) continue;
    for (size_t i = 0; i < transforms_.size(); ++i) {
      SSL_RETURN_IF_ERROR(StepPlannerOf(*transforms_[i])->PlanView(context.Nested(i), index, &(*plans)[v]));
    }
  }
  return absl::OkStatus();
}

void ImgPilMultiCropRandomApply::CountSteps(std::vector<int>* most_steps) const {
  for (size_t v = 0; v < most_steps->size(); ++v) {
    if (probabilities_.at(v) == 0.0) continue;
    for (const auto& transform : transforms_) (*most_steps)[v] += StepPlannerOf(*transform)->most_steps();
  }
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilMultiCropRandomApply(const ConfigNode& entry,
                                                                          const BuildContext& context) {
  ImgPilMultiCropRandomApplyOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  if (!options.transforms.is_list() || options.transforms.items().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "transforms"), " is ",
                                                   options.transforms.Describe(), ", expected a list of transforms"));
  }
  SSL_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Transform>> transforms,
                       MakeTransforms(options.transforms, TransformKey(entry, "transforms"), context));
  for (const std::unique_ptr<Transform>& transform : transforms) {
    if (transform->as_view_transform() == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "transforms"), " has ", transform->name(),
                                                     ", expected transforms of single views, without indices"));
    }
  }
  return std::make_unique<ImgPilMultiCropRandomApply>(std::move(transforms), std::move(options.prob));
}

std::unique_ptr<Options> MakeImgPilMultiCropRandomApplyOptions() {
  return std::make_unique<ImgPilMultiCropRandomApplyOptions>();
}

}  // namespace ssl
