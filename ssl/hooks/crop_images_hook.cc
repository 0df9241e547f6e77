// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/crop_images_hook.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/batch_views.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset_source.h"
#include "ssl/data/image/image.h"
#include "ssl/data/loader/denormalizer.h"
#include "ssl/data/sheets/contact_sheet.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/drawn_stage.h"
#include "ssl/hooks/heat_map.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

// Whether training batches are another program's, which it puts through transforms of its own.
bool HasOwnSource(const ConfigNode& config) {
  const ConfigNode* type = config.FindPath("DATA.TRAIN.BASE_DATASET");
  return type != nullptr && type->text() != DataSplitOptions().base_dataset;
}

absl::StatusOr<std::optional<Denormalizer>> MakeDenormalizer(const ConfigNode& config) {
  const ConfigNode* transforms = config.FindPath("DATA.TRAIN.TRANSFORMS");
  if (transforms == nullptr || transforms->items().empty() || HasOwnSource(config)) {
    return std::optional<Denormalizer>();
  }
  if (!TreatsViewsAlike(*transforms)) {
    SSL_LOG(INFO)
        << "crop_images: crops are shown from their least value to their largest, not in the colours of their "
           "images: config.DATA.TRAIN.TRANSFORMS makes floats of some views in another way";
    return std::optional<Denormalizer>();
  }
  SSL_ASSIGN_OR_RETURN(Denormalizer denormalizer, Denormalizer::Create(*transforms));
  return std::make_optional(std::move(denormalizer));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeCropImages(const CropImagesOptions& options, const ConfigNode& params,
                                                     const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(OutputFolder folder, DrawingFolder(options.save_dir, "crop_images", params, context));
  SSL_ASSIGN_OR_RETURN(std::optional<Denormalizer> denormalizer, MakeDenormalizer(context.config));
  return std::make_unique<CropImagesHook>(options, context.file_system, std::move(folder), std::move(denormalizer));
}

}  // namespace

absl::string_view CropImagesOptions::section() const { return kHookList; }

void CropImagesOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("save_dir", &save_dir, Doc("folder in the run directory"));
  visitor.Field("freq", &freq, Doc("updates between sheets, from the first on").AtLeast(1));
  visitor.Field("num_images", &num_images, Doc("images of the batch that have a row").AtLeast(1));
}

at::Tensor SheetOfCrops(const std::vector<at::Tensor>& views, int64_t rows, const Denormalizer* denormalizer) {
  for (const at::Tensor& view : views) rows = std::min(rows, view.size(0));
  std::vector<at::Tensor> pixels;  // that the cells borrow
  std::vector<std::vector<SheetCell>> cells(rows);
  for (const at::Tensor& view : views) {
    const at::Tensor shown = view.narrow(0, 0, rows).to(at::kCPU);
    pixels.push_back(denormalizer != nullptr ? denormalizer->ToPixels(shown) : AsPixels(shown));
    const at::Tensor& all = pixels.back();  // [rows, H, W, 1 or 3]
    for (int64_t row = 0; row < rows; ++row) {
      cells[row].emplace_back().image.Borrow(all[row].const_data_ptr<uint8_t>(), static_cast<int>(all.size(1)),
                                             static_cast<int>(all.size(2)), static_cast<int>(all.size(3)));
    }
  }
  const Image sheet = DrawSheet(cells, /*gap=*/0);
  at::Tensor result = at::empty({sheet.height(), sheet.width(), 3}, at::kByte);
  std::copy_n(sheet.pixels(), sheet.size_bytes(), result.mutable_data_ptr<uint8_t>());
  return result;
}

CropImagesHook::CropImagesHook(const CropImagesOptions& options, FileSystem& file_system, OutputFolder folder,
                               std::optional<Denormalizer> denormalizer)
    : options_(options),
      file_system_(file_system),
      folder_(std::move(folder)),
      denormalizer_(std::move(denormalizer)) {}

std::vector<PlannedAction> CropImagesHook::Plan() const {
  return {{"writes crops",
           {Cadence::Unit::kUpdate, options_.freq, 1, /*anchor=*/1, false},
           false,
           absl::StrCat(options_.save_dir, "/iteration_<iteration>")}};
}

absl::Status CropImagesHook::OnStep(StepContext& context) {
  if (!context.state.training || (context.state.iteration - 1) % options_.freq != 0) return absl::OkStatus();
  const absl::Status status = context.communicator.rank() == 0 ? Write(context) : absl::OkStatus();
  return AgreeOnStatus(status, "writing crops", context.communicator);
}

absl::Status CropImagesHook::Write(StepContext& context) const {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> views = ViewsOf(*context.batch);
  for (const at::Tensor& view : views) {
    const bool is_image = view.dim() == 4 && (view.size(1) == 1 || view.size(1) == 3);
    if (is_image) continue;
    return absl::InvalidArgumentError(absl::StrCat("a view of the batch has ", view.dim() == 4 ? view.size(1) : 0,
                                                   " channels, expected images of 1 or 3 channels to write"));
  }
  // A host's own source has not put its batches through the transforms of the configuration.
  const bool is_transformed =
      denormalizer_.has_value() && dynamic_cast<const DatasetSource*>(context.source) != nullptr;
  const Denormalizer* denormalizer = is_transformed ? &*denormalizer_ : nullptr;
  const at::Tensor sheet = SheetOfCrops(views, options_.num_images, denormalizer).unsqueeze(0);
  return KeepDrawings(sheet, *this, "crops", folder_, file_system_, context);
}

absl::Status RegisterCropImagesHook(Registries* registries) {
  return RegisterHook(registries, {"crop_images", "writes the crops that the network sees as sheets of images"},
                      &MakeCropImages);
}

}  // namespace ssl
