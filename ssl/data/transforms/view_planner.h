// SPDX-License-Identifier: Apache-2.0
//
// A transform whose work a device can do has this interface as well: it draws what it would do to the views of a
// sample, with the random numbers of Apply, into plans (ssl/kernels/view_plan.h) that are carried out there. The views
// are the same, bit for bit (draw_view_plan_test). Immutable and shared by all worker threads, as transforms are.
#ifndef SSL_DATA_TRANSFORMS_VIEW_PLANNER_H_
#define SSL_DATA_TRANSFORMS_VIEW_PLANNER_H_

#include <vector>

#include "absl/status/status.h"
#include "ssl/data/image/image.h"
#include "ssl/data/transform.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

// A transform that is one is final: a class of its own below it would inherit plans that know nothing of what it
// changes.
class ViewPlanner {
 public:
  virtual ~ViewPlanner() = default;

  // False of a transform that holds others of which one has no plans.
  virtual bool has_plans() const { return true; }

  // What Apply would do to the views of a sample whose image is `image`. plans: one for each view that there is before,
  // and for each behind it; they begin with the first byte of the image. InvalidArgument where the transform cannot
  // stand in a plan at this place, which is so of all samples or of none.
  virtual absl::Status Plan(const TransformContext& context, const Image& image,
                            std::vector<ViewPlan>* plans) const = 0;

  // Adds the most steps (ViewPlan::kMostSteps) that it ever takes of each view to *most_steps, which has a number for
  // each view.
  virtual void CountSteps(std::vector<int>* most_steps) const {}
};

// Of a ViewTransform that changes pixels behind the crop, or none.
class StepPlanner : public ViewPlanner {
 public:
  // Of the view at `index`, which is cropped.
  virtual absl::Status PlanView(const TransformContext& context, int index, ViewPlan* plan) const = 0;
  virtual int most_steps() const { return 0; }

  // Of all views.
  absl::Status Plan(const TransformContext& context, const Image& image, std::vector<ViewPlan>* plans) const final;
  void CountSteps(std::vector<int>* most_steps) const final;
};

// Its plans; null: it has none.
const ViewPlanner* PlannerOf(const Transform& transform);
const StepPlanner* StepPlannerOf(const Transform& transform);

// InvalidArgument unless each view is cropped: plans begin with that.
absl::Status CheckCropped(const std::vector<ViewPlan>& plans);

// InvalidArgument when something was done to a view before its crop.
absl::Status CheckUntouched(const std::vector<ViewPlan>& plans);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_VIEW_PLANNER_H_
