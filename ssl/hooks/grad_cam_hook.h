// SPDX-License-Identifier: Apache-2.0
//
// Grad-CAM while a network is trained: every `freq` updates, for the first `num_images` images of the batch, which
// places speak for a scalar s, as files
//
//   <run directory>/<save_dir>/iteration_<n>/<name>.<stage>_<i>.png
//
// of 224 x 224 pixels, <name> being that of the instance. The channels of a stage are weighted by the mean over the
// pixels of the gradient of s, and the positive part of their sum is drawn over the image (ssl/hooks/heat_map.h). s is,
// by `target`,
//
//   class       the score of the image's own class, of batches of one view with a class for each image;
//   similarity  the cosine between the image's embedding (the first output, first view) and that of its second view,
//               which stays fixed: what makes the two alike;
//   auto        class for batches of one view, similarity for others.
//
// A batch without what its target needs, such as an image whose class has no score, is not drawn, with a warning once
// for each reason: at the first batch, and when a drawing is due. What follows from the data set is refused.
//
// United Perception's grad_cam takes an optimizer step in between; this one leaves training as it is: evaluation mode,
// float32, and a gradient that goes to the map alone, not to the parameters. Rank 0 draws. Stage kObserve. No state.
// Costs a comparison in updates between.
#ifndef SSL_HOOKS_GRAD_CAM_HOOK_H_
#define SSL_HOOKS_GRAD_CAM_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/batch.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// The kwargs of an entry of config.hooks; layer_name and save_dir are United Perception's.
struct GradCamOptions : public ComponentOptions {
  std::string layer_name;  // "": the last stage that is a map
  std::string save_dir = "grad_cam";
  std::string target = "auto";
  int64_t freq = 100;
  int64_t num_images = 4;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  std::vector<std::string> leaves() const override { return {save_dir + "/iteration_*"}; }
  void VisitFields(FieldVisitor& visitor) override;
};

// Where the keys stand that messages name.
struct GradCamPaths {
  std::string layer_name = "layer_name";
  std::string target = "target";
};

class GradCamHook : public Hook {
 public:
  // folder: where the iterations' folders go.
  GradCamHook(const GradCamOptions& options, FileSystem& file_system, OutputFolder folder, GradCamPaths paths = {});

  absl::string_view name() const override { return "grad_cam"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  // Errors of DrawnStage.
  absl::Status OnStart(StepContext& context) override;
  // FailedPrecondition for target class and a source without labels.
  absl::Status OnPhaseStart(StepContext& context) override;
  absl::Status OnBatchStart(StepContext& context) override;
  absl::Status OnForward(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;

 private:
  bool IsByClass(const Batch& batch) const;
  bool WillDraw(const TrainState& state) const;  // in what is left of the run
  bool MayDraw(const StepContext& context) const;
  std::string Lack(const Batch& batch) const;  // what `target` needs and the batch lacks; "" when it has all
  bool WarnOfLack(const std::string& lack);    // false when it is ""
  absl::Status Draw(StepContext& context);
  // outputs: of the model for the images that are drawn. Scalar: the sum of s over the images.
  absl::StatusOr<at::Tensor> Target(const std::vector<at::Tensor>& outputs, StepContext& context) const;

  const GradCamOptions options_;
  FileSystem& file_system_;
  const OutputFolder folder_;
  const GradCamPaths paths_;
  std::string layer_;
  bool has_seen_batch_ = false;
  bool has_seen_outputs_ = false;
  std::set<std::string> told_;  // stages of one pixel and lacks, of which it has warned
};

absl::Status RegisterGradCamHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_GRAD_CAM_HOOK_H_
