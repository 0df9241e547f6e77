// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/transform_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/transform_options.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {
namespace {

// A transform applied to some of the views. Which views there are is known in Apply only.
class SelectedViews final : public Transform, public ViewPlanner {
 public:
  // transform: one with as_view_transform.
  SelectedViews(std::unique_ptr<Transform> transform, std::vector<int> indices)
      : transform_(std::move(transform)), indices_(std::move(indices)) {}

  absl::string_view name() const override { return transform_->name(); }
  FloatRule float_rule() const override { return transform_->float_rule(); }

  absl::Status Apply(const TransformContext& context, Sample* sample) const override {
    for (int index : indices_) {
      if (index >= sample->num_views()) {
        return absl::InvalidArgumentError(
            absl::StrCat("indices has ", index, ", expected less than ", sample->num_views(), ", the number of views"));
      }
      SSL_RETURN_IF_ERROR(transform_->as_view_transform()->ApplyToView(context, index, &sample->view(index)));
    }
    return absl::OkStatus();
  }

  bool has_plans() const override { return StepPlannerOf(*transform_) != nullptr; }

  absl::Status Plan(const TransformContext& context, const Image&, std::vector<ViewPlan>* plans) const override {
    SSL_RETURN_IF_ERROR(CheckCropped(*plans));
    for (int index : indices_) {
      SSL_RETURN_IF_ERROR(StepPlannerOf(*transform_)->PlanView(context, index, &plans->at(index)));
    }
    return absl::OkStatus();
  }

  void CountSteps(std::vector<int>* most_steps) const override {
    for (int index : indices_) most_steps->at(index) += StepPlannerOf(*transform_)->most_steps();
  }

 private:
  std::unique_ptr<Transform> transform_;
  std::vector<int> indices_;
};

absl::StatusOr<std::vector<int>> ReadIndices(const ConfigNode& entry, const ConfigNode& list) {
  std::vector<int> indices;
  for (const ConfigNode& item : list.items()) {
    const absl::StatusOr<int64_t> index = item.AsInt();
    if (index.ok() && *index >= 0 && *index < (1 << 20)) indices.push_back(static_cast<int>(*index));
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  if (list.is_list() && indices.size() == list.items().size()) return indices;
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "indices"), " is ", list.Describe(),
                                                 ", expected a list of different view numbers from 0"));
}

// The same entry without `key`, which its transform does not know.
ConfigNode Without(absl::string_view key, const ConfigNode& entry) {
  ConfigNode rest = ConfigNode::Map(entry.location());
  for (const ConfigNode::Entry& parameter : entry.entries()) {
    if (parameter.first != key) rest.Set(parameter.first, parameter.second);
  }
  return rest;
}

absl::StatusOr<std::unique_ptr<Transform>> MakeEntry(const ConfigNode& entry, const BuildContext& context) {
  const std::string& name = entry.Find("name")->text();
  if (const ConfigNode* type = entry.Find("transform_type"); type != nullptr) {
    return absl::UnimplementedError(absl::StrCat(TransformKey(entry, "transform_type"), " is ", type->Describe(),
                                                 ", expected no such key: transforms of other libraries are not here"));
  }
  const ConfigNode* indices = entry.Find("indices");
  if (indices == nullptr || indices->is_null()) {
    return context.registries.transforms.Make(name, Without("indices", entry), context);
  }
  SSL_ASSIGN_OR_RETURN(std::vector<int> views, ReadIndices(entry, *indices));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Transform> transform,
                       context.registries.transforms.Make(name, Without("indices", entry), context));
  if (views.empty()) return transform;  // VISSL: all views
  if (transform->as_view_transform() == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "indices"), " is given, but ", name,
                                                   " changes the views as a whole; expected no such key"));
  }
  return std::make_unique<SelectedViews>(std::move(transform), std::move(views));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Transform>>> MakeTransforms(const ConfigNode& list, absl::string_view place,
                                                                       const BuildContext& context) {
  if (list.items().size() > TransformContext::kListLimit) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, " has ", list.items().size(), " entries, expected at most ", TransformContext::kListLimit));
  }
  std::vector<std::unique_ptr<Transform>> transforms;
  for (size_t i = 0; i < list.items().size(); ++i) {
    const ConfigNode& entry = list.items()[i];
    const ConfigNode* name = entry.Find("name");
    if (name == nullptr || !name->is_scalar()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ".", i, " is ", entry.Describe(), ", expected a map with a name"));
    }
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Transform> transform, MakeEntry(entry, context));
    transforms.push_back(std::move(transform));
  }
  return transforms;
}

}  // namespace ssl
