// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/feature_vis_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/autocast.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/model.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/drawn_stage.h"
#include "ssl/hooks/evaluation_mode.h"
#include "ssl/hooks/heat_map.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

Interpolation InterpolationOf(absl::string_view name) {
  if (name == "nearest") return Interpolation::kNearest;
  if (name == "cubic") return Interpolation::kCubic;
  return name == "area" ? Interpolation::kArea : Interpolation::kLinear;
}

absl::StatusOr<std::unique_ptr<Hook>> MakeFeatureVis(const FeatureVisOptions& options, const ConfigNode& params,
                                                     const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(OutputFolder folder, DrawingFolder(options.save_dir, "feature_vis", params, context));
  return std::make_unique<FeatureVisHook>(options, context.file_system, std::move(folder),
                                          PlaceOf(params, "layer_name", context));
}

}  // namespace

absl::string_view FeatureVisOptions::section() const { return kHookList; }

void FeatureVisOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("layer_name", &layer_name,
                Doc("stages of the trunk, such as res4; empty: the last that is a map").MayBeOne());
  visitor.Field("save_dir", &save_dir, Doc("folder in the run directory"));
  visitor.Field("interpolation", &interpolation,
                Doc("how a map becomes as large as the drawing").OneOf({"linear", "nearest", "cubic", "area"}));
  visitor.Field("freq", &freq, Doc("updates between drawings, and before the first (ours)").AtLeast(1));
  visitor.Field("num_images", &num_images, Doc("images of the batch that are drawn (ours)").AtLeast(1));
}

std::vector<PlannedAction> FeatureVisHook::Plan() const {
  return {{"draws features over images",
           {Cadence::Unit::kUpdate, options_.freq, 1, 0, false},
           false,
           absl::StrCat(options_.save_dir, "/iteration_<iteration>")}};
}

FeatureVisHook::FeatureVisHook(const FeatureVisOptions& options, FileSystem& file_system, OutputFolder folder,
                               std::string path)
    : options_(options), file_system_(file_system), folder_(std::move(folder)), path_(std::move(path)) {}

absl::Status FeatureVisHook::OnStart(StepContext& context) {
  std::vector<std::string> wanted = options_.layer_name;
  if (wanted.empty()) wanted = {""};
  layers_.clear();
  for (const std::string& stage : wanted) {
    SSL_ASSIGN_OR_RETURN(layers_.emplace_back(), DrawnStage(context.model, stage, path_));
  }
  return absl::OkStatus();
}

absl::Status FeatureVisHook::OnStep(StepContext& context) {
  if (!context.state.training || context.state.iteration % options_.freq != 0) return absl::OkStatus();
  const WholeParameters whole(context.model);  // rank 0 runs the model alone
  const absl::Status status = context.communicator.rank() == 0 ? Draw(context) : absl::OkStatus();
  return AgreeOnStatus(status, "drawing features", context.communicator);
}

absl::Status FeatureVisHook::Draw(StepContext& context) {
  const GeneratorScope generator;  // a model of the host's may draw
  const EvaluationMode mode(context.model, context.state.training);
  const AutocastScope full_precision(Autocast::kOff);
  const at::NoGradGuard no_grad;
  SSL_ASSIGN_OR_RETURN(const at::Tensor images, DrawnImages(context, 0, options_.num_images));
  std::vector<FeatureRequest> requests;
  for (const std::string& layer : layers_) requests.push_back({layer, {}, /*flatten=*/false});
  const std::vector<at::Tensor> features = context.model.Features(images, requests);
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (features[i].dim() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " has '", layers_[i], "', which is pooled, expected stages that are maps"));
    }
    WarnOfOnePixel(features[i], *this, layers_[i], &told_);
    const at::Tensor maps =
        ResizeMaps(ActivationMap(features[i]), kDrawingSize, InterpolationOf(options_.interpolation));
    const at::Tensor drawings = DrawOverImages(maps, images);
    SSL_RETURN_IF_ERROR(KeepDrawings(drawings, *this, layers_[i], folder_, file_system_, context));
  }
  return absl::OkStatus();
}

absl::Status RegisterFeatureVisHook(Registries* registries) {
  return RegisterHook(registries, {"feature_vis", "draws what stages of the trunk answer to over the images"},
                      &MakeFeatureVis);
}

}  // namespace ssl
