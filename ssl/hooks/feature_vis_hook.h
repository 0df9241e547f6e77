// SPDX-License-Identifier: Apache-2.0
//
// Draws what stages of the trunk answer to, over the images that were trained on: every `freq` updates, the first
// `num_images` images of the batch (its first view) as files
//
//   <run directory>/<save_dir>/iteration_<n>/<name>.<stage>_<i>.png
//
// of 224 x 224 pixels, <name> being that of the instance: the sum of a stage's channels, positive part, stretched to
// the whole range, as colours over the image (ssl/hooks/heat_map.h). United Perception's feature_vis. It leaves
// training as it is: evaluation mode, no gradients, float32. Rank 0 draws. Stage kObserve. No state; a resumed run
// draws the same files again. Costs a comparison in updates between.
#ifndef SSL_HOOKS_FEATURE_VIS_HOOK_H_
#define SSL_HOOKS_FEATURE_VIS_HOOK_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// The kwargs of an entry of config.hooks; United Perception's, but for the last two, which are ours.
struct FeatureVisOptions : public ComponentOptions {
  std::vector<std::string> layer_name;  // empty: the last stage that is a map
  std::string save_dir = "feat_vis";
  std::string interpolation = "linear";
  int64_t freq = 100;
  int64_t num_images = 4;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  std::vector<std::string> leaves() const override { return {save_dir + "/iteration_*"}; }
  void VisitFields(FieldVisitor& visitor) override;
};

class FeatureVisHook : public Hook {
 public:
  // folder: where the iterations' folders go. path: of layer_name, with its place, for messages.
  FeatureVisHook(const FeatureVisOptions& options, FileSystem& file_system, OutputFolder folder,
                 std::string path = "layer_name");

  absl::string_view name() const override { return "feature_vis"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  // NotFound for a stage that the trunk does not have.
  absl::Status OnStart(StepContext& context) override;
  // InvalidArgument for a stage that is no map.
  absl::Status OnStep(StepContext& context) override;

 private:
  absl::Status Draw(StepContext& context);

  const FeatureVisOptions options_;
  FileSystem& file_system_;
  const OutputFolder folder_;
  const std::string path_;
  std::vector<std::string> layers_;
  std::set<std::string> told_;  // stages of one pixel, of which it has warned
};

absl::Status RegisterFeatureVisHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_FEATURE_VIS_HOOK_H_
