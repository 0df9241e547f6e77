// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/preview_engine.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/reader.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/batch_views.h"
#include "ssl/core/core_options.h"
#include "ssl/core/phases_builder.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/loader/denormalizer.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/replaced_images.h"
#include "ssl/data/sheets/bitmap_font.h"
#include "ssl/data/sheets/contact_sheet.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/original_images.h"
#include "ssl/engines/run_files.h"
#include "ssl/hooks/heat_map.h"

namespace ssl {
namespace {

constexpr char kSection[] = "PREVIEW";
constexpr char kPrefix[] = "preview";
constexpr char kTrain[] = "DATA.TRAIN";
constexpr char kWhyStretched[] =
    ", not in the colours of their images: config.DATA.TRAIN.TRANSFORMS makes floats of some views in another way";
constexpr int kGap = 4;  // pixels
constexpr int kMostColumn = 24 * kCharacterAdvance;

std::string SourceType(const EngineContext& context) {
  const ConfigNode* type = context.config.Section(kTrain).Find("BASE_DATASET");
  return type == nullptr ? DataSplitOptions().base_dataset : type->text();
}

// As a training on the CPU opens it, where the views are looked at.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(const TaskOptions& task, EngineContext& context) {
  const OpeningScope opening(context);
  SSL_RETURN_IF_ERROR(opening.CheckNotStopped());
  ConfigNode config = context.config;
  config.SetPath("MACHINE.DEVICE", ConfigNode::FromString("cpu"));
  config.SetPath(absl::StrCat(kTrain, ".AUGMENT_ON"), ConfigNode::FromString("host"));
  return context.registries.batch_sources.Make(
      SourceType(context), config.Section(kTrain),
      {config, context.registries, context.communicator, task.run.seed, context.run_directory, /*first_iteration=*/0,
       context.file_system, &context.stop});
}

// The number under which a training asks for its first epoch.
int64_t FirstTrainingPhase(const TaskOptions& task) {
  const std::vector<Phase> phases =
      PhasesBuilder{task.num_epochs, TestCadence(task.run), task.run.test_model, task.run.test_only}.Build();
  const auto first = std::find_if(phases.begin(), phases.end(), [](const Phase& phase) { return phase.train; });
  return first == phases.end() ? 0 : first - phases.begin();
}

// A large one of photographs takes long.
absl::StatusOr<const Batch*> FirstBatch(const TaskOptions& task, BatchSource& source, EngineContext& context) {
  const OpeningScope opening(context);
  SSL_RETURN_IF_ERROR(opening.CheckNotStopped());
  SSL_RETURN_IF_ERROR(source.StartEpoch(FirstTrainingPhase(task), 0));
  SSL_ASSIGN_OR_RETURN(const Batch* batch, source.Next());
  if (batch == nullptr) return absl::InvalidArgumentError("preview: config.DATA.TRAIN gives no batch");
  return batch;
}

absl::Status CheckViews(const std::vector<at::Tensor>& views) {
  for (const at::Tensor& view : views) {
    if (view.dim() != 4 || (view.size(1) != 1 && view.size(1) != 3)) {
      return absl::InvalidArgumentError(
          "preview: a view of the batch is no image of 1 or 3 channels; check config.DATA.TRAIN.TRANSFORMS");
    }
  }
  if (!views.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("preview: batches have no views; check config.DATA.TRAIN.TRANSFORMS");
}

using Faults = std::map<int64_t, ReadFault>;  // by position in the data set

// The images of the batch that could not be read, and have another one in their place. A host's own source may not
// tell.
Faults FaultsOf(const BatchSource& source) {
  const auto* reader = dynamic_cast<const ReplacedImages*>(&source);
  return reader == nullptr ? Faults() : reader->replaced_images();
}

// Of the first `images` of the batch; "" where all can be read.
std::string BrokenText(const Faults& faults, const at::Tensor& indices, int64_t images) {
  int64_t broken = 0;
  for (int64_t row = 0; row < images && !faults.empty(); ++row) {
    broken += static_cast<int64_t>(faults.count(indices[row].item<int64_t>()));
  }
  return broken == 0
             ? ""
             : absl::StrCat("; ", broken, " of them cannot be read: what training puts in their place is shown");
}

std::string SizeText(const Image& image) { return absl::StrCat(image.width(), "x", image.height()); }

// images: [B, H, W, C] uint8, which the result borrows.
Image Borrowed(const at::Tensor& images, int64_t position) {
  Image image;
  image.Borrow(images[position].const_data_ptr<uint8_t>(), static_cast<int>(images.size(1)),
               static_cast<int>(images.size(2)), static_cast<int>(images.size(3)));
  return image;
}

using Cells = std::vector<std::vector<SheetCell>>;

// The views' columns. pixels: of each view; outlives the cells.
void AddViews(const std::vector<at::Tensor>& pixels, Cells* cells) {
  for (size_t view = 0; view < pixels.size(); ++view) {
    for (size_t row = 0; row < cells->size(); ++row) {
      SheetCell cell{Borrowed(pixels[view], static_cast<int64_t>(row))};
      cell.caption = {absl::StrCat("view ", view, " ", SizeText(cell.image))};
      (*cells)[row].push_back(std::move(cell));
    }
  }
}

// The first column. least_side: pixels, of the largest view; images are as wide as their names, which would leave white
// beside smaller ones. What stands in for a broken one has no size of its file. Cancelled when a stop is requested
// between two images: photographs take long to decode.
absl::Status AddOriginals(const OriginalImages& originals, const at::Tensor& indices, const Faults& faults,
                          int least_side, const StopToken& stop, Cells* cells) {
  int side = least_side;
  for (size_t row = 0; row < cells->size(); ++row) {
    const int64_t index = indices[static_cast<int64_t>(row)].item<int64_t>();
    side = std::max(side, std::min(TextWidth(originals.ShortName(index)), kMostColumn));
  }
  for (size_t row = 0; row < cells->size(); ++row) {
    const int64_t index = indices[static_cast<int64_t>(row)].item<int64_t>();
    if (stop.requested()) return absl::CancelledError("preview: stopped");
    SSL_ASSIGN_OR_RETURN(const Image image, originals.Read(index));
    const auto fault = faults.find(index);
    const std::string about =
        fault == faults.end() ? SizeText(image) : absl::StrCat("broken: ", ReadFaultName(fault->second));
    (*cells)[row].push_back({FitImage(image, side), {originals.ShortName(index), about}});
  }
  return absl::OkStatus();
}

int LargestSide(const std::vector<at::Tensor>& views) {
  int64_t side = 0;
  for (const at::Tensor& view : views) side = std::max({side, view.size(2), view.size(3)});
  return static_cast<int>(side);
}

// views: [B, C, H, W] each. Returns [B, H, W, C] uint8 of each. A host's own source has not put its batches through the
// transforms of the configuration: those are shown from their least value to their largest, as are views of which
// nobody knows what they have gone through.
absl::StatusOr<std::vector<at::Tensor>> PixelsOf(const std::vector<at::Tensor>& views, const Dataset* dataset,
                                                 const EngineContext& context) {
  const ConfigNode* list = context.config.Section(kTrain).Find("TRANSFORMS");
  const ConfigNode transforms = list != nullptr ? *list : ConfigNode::List();
  const bool is_own = dataset == nullptr || SourceType(context) != DataSplitOptions().base_dataset;
  std::vector<at::Tensor> pixels;
  if (is_own || !TreatsViewsAlike(transforms)) {
    if (!is_own) SSL_LOG(INFO) << "preview: views are shown from their least value to their largest" << kWhyStretched;
    for (const at::Tensor& view : views) pixels.push_back(AsPixels(view));
    return pixels;
  }
  SSL_ASSIGN_OR_RETURN(const Denormalizer denormalizer, Denormalizer::Create(transforms));
  for (const at::Tensor& view : views) pixels.push_back(denormalizer.ToPixels(view));
  return pixels;
}

class PreviewEngine : public Engine {
 public:
  explicit PreviewEngine(PreviewOptions options) : options_(options) {}

  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    if (context.run_directory.empty()) {
      return absl::FailedPreconditionError(
          "engine_name=preview writes into the run directory; set config.CHECKPOINT.DIR");
    }
    EngineReport report;
    const auto draw = [&] { return context.communicator.rank() == 0 ? Draw(context, &report) : absl::OkStatus(); };
    const absl::Status status = AgreeOnWork(draw, kPrefix, context.communicator);
    if (absl::IsCancelled(status)) return StoppedReport(kPrefix);
    SSL_RETURN_IF_ERROR(status);
    return report;
  }

  absl::Status Check(EngineContext& context) const override {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    return OpenSource(task, context).status();
  }

  bool uses_device() const override { return false; }

 private:
  absl::Status Draw(EngineContext& context, EngineReport* report) const {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source, OpenSource(task, context));
    SSL_ASSIGN_OR_RETURN(const Batch* batch, FirstBatch(task, *source, context));
    SSL_RETURN_IF_ERROR(CheckViews(ViewsOf(*batch)));
    const Dataset* dataset = DatasetBehind(*source);
    return GuardTorch(kPrefix, [&] { return DrawBatch(*batch, FaultsOf(*source), dataset, context, report); });
  }

  // dataset: of the batch; null where there is none, whose images could stand beside their views.
  absl::Status DrawBatch(const Batch& batch, const Faults& faults, const Dataset* dataset, EngineContext& context,
                         EngineReport* report) const {
    Cells cells(std::min(options_.num_images, batch.size()));
    const std::vector<at::Tensor> views = ViewsOf(batch);
    if (dataset != nullptr) {
      SSL_RETURN_IF_ERROR(
          AddOriginals(OriginalImages(*dataset), batch.indices, faults, LargestSide(views), context.stop, &cells));
    }
    SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> pixels, PixelsOf(views, dataset, context));
    AddViews(pixels, &cells);
    const auto images = static_cast<int64_t>(cells.size());
    SSL_RETURN_IF_ERROR(Write(DrawSheet(cells, kGap), images, pixels.size(), context, report));
    report->summary += BrokenText(faults, batch.indices, images);
    return absl::OkStatus();
  }

  absl::Status Write(const Image& sheet, int64_t images, size_t views, EngineContext& context,
                     EngineReport* report) const {
    SSL_ASSIGN_OR_RETURN(const std::string png, EncodePng(sheet));
    const std::string path = absl::StrCat(context.run_directory, "/", kPreviewFile);
    SSL_RETURN_IF_ERROR(WriteEvaluationFile(context.run_directory, kPreviewFile, png, context.file_system));
    ConfigNode results = ConfigNode::Map();
    results.Set("file", ConfigNode::FromString(path));
    results.Set("images", ConfigNode::FromInt(images));
    results.Set("views", ConfigNode::FromInt(static_cast<int64_t>(views)));
    context.results.Set(kPrefix, std::move(results));
    report->summary = absl::StrCat("the first ", images, " images of the first training batch",
                                   images < options_.num_images ? ", which has no more," : "", " and their ", views,
                                   " views: ", path, " (", SizeText(sheet), ")");
    return absl::OkStatus();
  }

  const PreviewOptions options_;
};

}  // namespace

void PreviewOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("NUM_IMAGES", &num_images, Doc("images of the first training batch that have a row").Between(1, 256));
}

absl::StatusOr<std::unique_ptr<Engine>> MakePreviewEngine(const ConfigNode& config, const BuildContext& context) {
  PreviewOptions options;
  SSL_RETURN_IF_ERROR(
      ReadOptions(config.Section(kSection), absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  return std::make_unique<PreviewEngine>(options);
}

}  // namespace ssl
