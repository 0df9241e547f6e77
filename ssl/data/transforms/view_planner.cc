// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/view_planner.h"

#include <algorithm>
#include <cstddef>

#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

bool IsCropped(const ViewPlan& plan) { return plan.rows.out > 0; }

}  // namespace

absl::Status StepPlanner::Plan(const TransformContext& context, const Image&, std::vector<ViewPlan>* plans) const {
  SSL_RETURN_IF_ERROR(CheckCropped(*plans));
  for (size_t v = 0; v < plans->size(); ++v) {
    SSL_RETURN_IF_ERROR(PlanView(context, static_cast<int>(v), &(*plans)[v]));
  }
  return absl::OkStatus();
}

void StepPlanner::CountSteps(std::vector<int>* most_steps) const {
  for (int& steps : *most_steps) steps += this->most_steps();
}

const ViewPlanner* PlannerOf(const Transform& transform) {
  const auto* const planner = dynamic_cast<const ViewPlanner*>(&transform);
  return planner != nullptr && planner->has_plans() ? planner : nullptr;
}

const StepPlanner* StepPlannerOf(const Transform& transform) { return dynamic_cast<const StepPlanner*>(&transform); }

absl::Status CheckCropped(const std::vector<ViewPlan>& plans) {
  if (std::all_of(plans.begin(), plans.end(), IsCropped)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "stands before a crop, expected behind it: views that a device makes begin with RandomResizedCrop or "
      "ImgPilToMultiCrop");
}

absl::Status CheckUntouched(const std::vector<ViewPlan>& plans) {
  if (std::none_of(plans.begin(), plans.end(), IsCropped)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "stands behind a crop: a device makes one crop for each view, which ImgReplicatePil comes before");
}

}  // namespace ssl
