// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/grad_cam_hook.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cosine_similarity.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/autocast.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/batch_views.h"
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

constexpr char kAuto[] = "auto";
constexpr char kClass[] = "class";
constexpr char kSimilarity[] = "similarity";
constexpr char kNoScores[] = "the model's output is no score for each class";

bool HasClasses(const Batch& batch) {
  return batch.targets.defined() && batch.targets.dim() == 1 && batch.targets.scalar_type() == at::kLong;
}

bool HasScores(const std::vector<at::Tensor>& outputs) { return !outputs.empty() && outputs[0].dim() == 2; }

// Those of the batch's images; labels may be of more images.
at::Tensor ClassesOf(const at::Tensor& scores, const Batch& batch) {
  return batch.targets.narrow(0, 0, scores.size(0)).unsqueeze(1);
}

// What the score of the images' classes needs and is not there; "" when all is.
std::string LackOfScores(const std::vector<at::Tensor>& outputs, const Batch& batch) {
  if (!HasScores(outputs)) return kNoScores;
  const at::Tensor classes = ClassesOf(outputs[0], batch);
  const bool fits = classes.min().item<int64_t>() >= 0 && classes.max().item<int64_t>() < outputs[0].size(1);
  return fits ? "" : "an image's class has no score";
}

absl::StatusOr<std::unique_ptr<Hook>> MakeGradCam(const GradCamOptions& options, const ConfigNode& params,
                                                  const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(OutputFolder folder, DrawingFolder(options.save_dir, "grad_cam", params, context));
  return std::make_unique<GradCamHook>(
      options, context.file_system, std::move(folder),
      GradCamPaths{PlaceOf(params, "layer_name", context), PlaceOf(params, "target", context)});
}

}  // namespace

absl::string_view GradCamOptions::section() const { return kHookList; }

void GradCamOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("layer_name", &layer_name, Doc("stage of the trunk, such as res4; empty: the last that is a map"));
  visitor.Field("save_dir", &save_dir, Doc("folder in the run directory"));
  visitor.Field(
      "target", &target,
      Doc("what speaks for: the score of the image's class, or its similarity to the second view; auto: class "
          "for batches of one view (ours)")
          .OneOf({kAuto, kClass, kSimilarity}));
  visitor.Field("freq", &freq, Doc("updates between drawings, and before the first (ours)").AtLeast(1));
  visitor.Field("num_images", &num_images, Doc("images of the batch that are drawn (ours)").AtLeast(1));
}

std::vector<PlannedAction> GradCamHook::Plan() const {
  return {{"draws what speaks for images",
           {Cadence::Unit::kUpdate, options_.freq, 1, 0, false},
           false,
           absl::StrCat(options_.save_dir, "/iteration_<iteration>")}};
}

GradCamHook::GradCamHook(const GradCamOptions& options, FileSystem& file_system, OutputFolder folder,
                         GradCamPaths paths)
    : options_(options), file_system_(file_system), folder_(std::move(folder)), paths_(std::move(paths)) {}

absl::Status GradCamHook::OnStart(StepContext& context) {
  SSL_ASSIGN_OR_RETURN(layer_, DrawnStage(context.model, options_.layer_name, paths_.layer_name));
  return absl::OkStatus();
}

bool GradCamHook::WillDraw(const TrainState& state) const {
  return (state.iteration / options_.freq + 1) * options_.freq <= state.max_iterations;
}

// Before anything is learned: a source that says that it has no labels never has any.
absl::Status GradCamHook::OnPhaseStart(StepContext& context) {
  const bool draws = context.state.training && WillDraw(context.state);
  if (!draws || options_.target != kClass || context.source == nullptr || context.source->has_labels()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      paths_.target, " is class, and the training data have no labels; expected labels and a supervised method, or ",
      "target similarity, which needs two views"));
}

// What the first batch lacks, later ones may have: it is told at once, and each drawing judged by its own batch.
absl::Status GradCamHook::OnBatchStart(StepContext& context) {
  if (has_seen_batch_ || !MayDraw(context)) return absl::OkStatus();
  has_seen_batch_ = true;
  WarnOfLack(Lack(*context.batch));
  return absl::OkStatus();
}

absl::Status GradCamHook::OnForward(StepContext& context) {
  if (has_seen_outputs_ || !MayDraw(context)) return absl::OkStatus();
  has_seen_outputs_ = true;
  if (IsByClass(*context.batch) && !HasScores(context.outputs)) WarnOfLack(kNoScores);
  return absl::OkStatus();
}

bool GradCamHook::MayDraw(const StepContext& context) const {
  return context.communicator.rank() == 0 && context.state.training && WillDraw(context.state);
}

std::string GradCamHook::Lack(const Batch& batch) const {
  if (batch.views.empty()) return "the batch has no images";
  if (!HasARowForEachSample(batch)) return "the batch has the views of an image in one tensor";
  if (IsByClass(batch)) return HasClasses(batch) ? "" : "images have no classes";
  return batch.views.size() > 1 ? "" : "the batch has 1 view";
}

bool GradCamHook::WarnOfLack(const std::string& lack) {
  if (lack.empty()) return false;
  if (!told_.insert(lack).second) return true;
  SSL_LOG(WARNING) << instance_name() << ": " << lack << ", so that such batches are not drawn; target class needs "
                   << "a class for each image and a score for each class, target similarity two views";
  return true;
}

bool GradCamHook::IsByClass(const Batch& batch) const {
  return options_.target == kClass || (options_.target == kAuto && batch.views.size() == 1);
}

absl::Status GradCamHook::OnStep(StepContext& context) {
  if (!context.state.training || context.state.iteration % options_.freq != 0) return absl::OkStatus();
  const WholeParameters whole(context.model);  // rank 0 runs the model alone
  const absl::Status status = context.communicator.rank() == 0 ? Draw(context) : absl::OkStatus();
  return AgreeOnStatus(status, "drawing what speaks for an image", context.communicator);
}

absl::StatusOr<at::Tensor> GradCamHook::Target(const std::vector<at::Tensor>& outputs, StepContext& context) const {
  const Batch& batch = *context.batch;
  if (IsByClass(batch)) return outputs.at(0).gather(1, ClassesOf(outputs[0], batch)).sum();
  SSL_ASSIGN_OR_RETURN(const at::Tensor others, DrawnImages(context, 1, options_.num_images));
  at::Tensor fixed;
  {
    const at::NoGradGuard no_grad;
    fixed = context.model.Forward({others}).at(0);
  }
  return at::cosine_similarity(outputs.at(0).flatten(1), fixed.flatten(1)).sum();
}

absl::Status GradCamHook::Draw(StepContext& context) {
  const Batch& batch = *context.batch;
  if (WarnOfLack(Lack(batch))) return absl::OkStatus();
  const GeneratorScope generator;  // a model of the host's may draw
  const EvaluationMode mode(context.model, context.state.training);
  const AutocastScope full_precision(Autocast::kOff);
  const at::AutoGradMode gradients(true);
  SSL_ASSIGN_OR_RETURN(const at::Tensor images, DrawnImages(context, 0, options_.num_images));
  const MapAndOutputs forward = context.model.ForwardWithMap(images, layer_);
  if (IsByClass(batch) && WarnOfLack(LackOfScores(forward.outputs, batch))) return absl::OkStatus();
  WarnOfOnePixel(forward.map, *this, layer_, &told_);
  SSL_ASSIGN_OR_RETURN(const at::Tensor target, Target(forward.outputs, context));
  // Towards the map alone: backward() would add to the gradients of parameters.
  const std::vector<at::Tensor> gradient = torch::autograd::grad({target}, {forward.map});
  const at::NoGradGuard no_grad;
  const at::Tensor maps =
      ResizeMaps(GradCamMap(forward.map.detach(), gradient[0]), kDrawingSize, Interpolation::kLinear);
  return KeepDrawings(DrawOverImages(maps, images), *this, layer_, folder_, file_system_, context);
}

absl::Status RegisterGradCamHook(Registries* registries) {
  return RegisterHook(registries, {"grad_cam", "draws which places of an image speak for its class or embedding"},
                      &MakeGradCam);
}

}  // namespace ssl
