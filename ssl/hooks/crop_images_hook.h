// SPDX-License-Identifier: Apache-2.0
//
// Writes what the network sees: after the first update, and then each `freq` updates, a sheet of the last batch as
//
//   <run directory>/<save_dir>/iteration_<n>/<name>.crops_0.png
//
// and for the sinks that show images, <name> being that of the instance. One row for each of the first `num_images`
// images, one column for each of their views (crops), every crop in its own size, with the colours that it had before
// DATA.TRAIN.TRANSFORMS normalised it; of a source without transforms, or without a data set that went through them,
// from its least value, black, to its largest, white. Rank 0 writes. Stage kObserve. No state; it changes nothing, and
// a resumed run writes the same sheets again. Costs a comparison in updates between.
#ifndef SSL_HOOKS_CROP_IMAGES_HOOK_H_
#define SSL_HOOKS_CROP_IMAGES_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/data/loader/denormalizer.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// The kwargs of an entry of config.hooks (ours).
struct CropImagesOptions : public ComponentOptions {
  std::string save_dir = "crops";
  int64_t freq = 1000;
  int64_t num_images = 8;

  absl::string_view section() const override;
  bool enabled() const override { return false; }
  std::vector<std::string> leaves() const override { return {save_dir + "/iteration_*"}; }
  void VisitFields(FieldVisitor& visitor) override;
};

// views: of a batch, each [B, 1 or 3, H, W]. denormalizer: null: values are stretched. Returns the sheet of the first
// `rows` images, [rows * height, width, 3] uint8: height is that of the largest crop, width the sum of all, white where
// a crop is smaller.
at::Tensor SheetOfCrops(const std::vector<at::Tensor>& views, int64_t rows, const Denormalizer* denormalizer);

class CropImagesHook : public Hook {
 public:
  // folder: where the iterations' folders go. denormalizer: of the transforms of a data set; none where there are none.
  CropImagesHook(const CropImagesOptions& options, FileSystem& file_system, OutputFolder folder,
                 std::optional<Denormalizer> denormalizer);

  absl::string_view name() const override { return "crop_images"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  // InvalidArgument for views that are no images.
  absl::Status OnStep(StepContext& context) override;

 private:
  absl::Status Write(StepContext& context) const;

  const CropImagesOptions options_;
  FileSystem& file_system_;
  const OutputFolder folder_;
  const std::optional<Denormalizer> denormalizer_;
};

absl::Status RegisterCropImagesHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_CROP_IMAGES_HOOK_H_
