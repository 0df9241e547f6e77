// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/folder_recipe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/config/world_shape.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/dataset_builder.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/left_at_default.h"

namespace ssl {
namespace {

constexpr char kSection[] = "FOLDER_RECIPE";
constexpr char kPlace[] = "folder recipe";  // where a chosen value says that it stands
constexpr char kEpochs[] = "OPTIMIZER.num_epochs";
constexpr char kBatchSize[] = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
constexpr char kTransforms[] = "DATA.TRAIN.TRANSFORMS";
constexpr char kAuto[] = "auto";

constexpr int64_t kAssumedImages = 1000;
// Up to this many images, crops are large.
constexpr int64_t kFewImages = 200;
constexpr int64_t kLargeCrop = 96;  // pixels
constexpr int64_t kSmallCrop = 64;
// Pixels that a training looks at, in all crops: about ten minutes of a ResNet-18 on two cores.
constexpr double kPixelBudget = 1.5e8;
constexpr double kBudgetMinutes = 10;
constexpr int64_t kCropsPerImage = 2;
constexpr int64_t kFewestEpochs = 8;
constexpr int64_t kMostEpochs = 100;
constexpr int64_t kSmallestBatch = 8;
constexpr int64_t kLargestBatch = 64;
// Fewer updates in an epoch would leave the schedule too few steps.
constexpr int64_t kUpdatesPerEpoch = 4;

bool IsOpen(const ConfigNode& config, const ConfigNode& defaults, const char* path) {
  return IsLeftAtDefault(config.FindPath(path), defaults.FindPath(path));
}

bool HasAutoSize(const ConfigNode& config) {
  const ConfigNode* transforms = config.FindPath(kTransforms);
  if (transforms == nullptr) return false;
  return std::any_of(transforms->items().begin(), transforms->items().end(), [](const ConfigNode& transform) {
    const ConfigNode* size = transform.Find("size");
    return size != nullptr && size->text() == kAuto;
  });
}

struct CountedImages {
  int64_t count = kAssumedImages;
  std::string source;  // for people; "" where they are assumed
};

CountedImages CountImages(const Registries& registries, const ConfigNode& config) {
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  const absl::StatusOr<std::unique_ptr<Dataset>> dataset =
      BuildDataset(config.Section("DATA.TRAIN"), {config, registries, *alone});
  if (!dataset.ok()) return {};
  const int64_t count = (*dataset)->size();
  return {count, absl::StrCat(count, count == 1 ? " image in " : " images in ", (*dataset)->description())};
}

void Log(const CountedImages& images, const std::string& what, const std::string& why) {
  if (images.source.empty()) return;
  SSL_LOG(INFO) << "folder recipe: " << what << ", for " << images.source << ": " << why;
}

ConfigNode Chosen(int64_t value) {
  ConfigNode node = ConfigNode::FromInt(value);
  node.Relocate({kPlace, 0});
  return node;
}

void Choose(const char* path, int64_t value, const std::string& why, const CountedImages& images, ConfigNode* config) {
  config->SetPath(path, Chosen(value));
  Log(images, absl::StrCat("config.", path, "=", value), why);
}

void ChooseCropSize(int64_t size, const CountedImages& images, ConfigNode* config) {
  if (!HasAutoSize(*config)) return;
  const size_t count = config->FindPath(kTransforms)->items().size();
  for (size_t i = 0; i < count; ++i) {
    const std::string path = absl::StrCat(kTransforms, ".", i, ".size");
    const ConfigNode* node = config->FindPath(path);
    if (node == nullptr || node->text() != kAuto) continue;
    config->SetPath(path, Chosen(size));
    Log(images, absl::StrCat("config.", path, "=", size),
        size == kLargeCrop ? "few images leave time for large crops" : "many images take the time of larger crops");
  }
}

int64_t PowerOfTwoBelow(int64_t value) {
  int64_t power = 1;
  while (2 * power <= value) power *= 2;
  return power;
}

std::string WhyBatchSize(const FolderChoices& choices, int64_t images) {
  if (images >= kUpdatesPerEpoch * choices.batch_size) {
    return absl::StrCat("at least ", kUpdatesPerEpoch,
                        " updates in an epoch, and what two cores step through in seconds");
  }
  return absl::StrCat("images of one batch are told apart, so that it takes ", kSmallestBatch,
                      ", or as many as there are");
}

double PixelsOfAnEpoch(const FolderChoices& choices, int64_t images) {
  return static_cast<double>(images * kCropsPerImage) * static_cast<double>(choices.crop_size * choices.crop_size);
}

// "40 minutes", "7 hours", "30 days"
std::string RoughDuration(double minutes) {
  constexpr double kHour = 60;
  constexpr double kDay = 24 * kHour;
  if (minutes < 2 * kHour) return absl::StrCat(std::llround(minutes), " minutes");
  if (minutes < 2 * kDay) return absl::StrCat(std::llround(minutes / kHour), " hours");
  return absl::StrCat(std::llround(minutes / kDay), " days");
}

std::string WhyEpochs(const FolderChoices& choices, int64_t images) {
  const double budgets = static_cast<double>(choices.num_epochs) * PixelsOfAnEpoch(choices, images) / kPixelBudget;
  const std::string seen = absl::StrCat("each is seen ", choices.num_epochs, " times, ");
  if (choices.num_epochs > kFewestEpochs || budgets < 1.5) {
    return absl::StrCat(seen, "as often as about ten minutes on two cores allow, and at most ", kMostEpochs);
  }
  return absl::StrCat(seen, "the fewest, in about ", RoughDuration(kBudgetMinutes * budgets),
                      " on two cores; config.DATA.TRAIN.DATA_LIMIT takes a part of the images");
}

}  // namespace

void FolderRecipeOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("ENABLED", &enabled,
                Doc("choose num_epochs, BATCHSIZE_PER_REPLICA and sizes of transforms that are 'auto', where nothing "
                    "sets them, from the number of images"));
}

FolderChoices ChooseForFolder(int64_t images) {
  FolderChoices choices;
  choices.crop_size = images <= kFewImages ? kLargeCrop : kSmallCrop;
  choices.num_epochs =
      std::clamp<int64_t>(std::llround(kPixelBudget / PixelsOfAnEpoch(choices, images)), kFewestEpochs, kMostEpochs);
  choices.batch_size =
      std::clamp(PowerOfTwoBelow(images / kUpdatesPerEpoch), std::min(kSmallestBatch, images), kLargestBatch);
  return choices;
}

absl::Status ResolveFolderRecipe(const Registries& registries, ConfigNode* config) {
  FolderRecipeOptions options;
  SSL_RETURN_IF_ERROR(
      ReadOptions(config->Section(kSection), absl::StrCat("config.", kSection), UnknownKeys::kIgnore, &options));
  if (!options.enabled) return absl::OkStatus();
  const ConfigNode defaults = registries.options.Defaults();
  const bool has_open_epochs = IsOpen(*config, defaults, kEpochs);
  const bool has_open_batch_size = IsOpen(*config, defaults, kBatchSize);
  if (!has_open_epochs && !has_open_batch_size && !HasAutoSize(*config)) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(*config));
  const CountedImages images = CountImages(registries, *config);
  const FolderChoices choices = ChooseForFolder(images.count);
  if (has_open_batch_size) {
    Choose(kBatchSize, std::max<int64_t>(1, choices.batch_size / world.ranks()), WhyBatchSize(choices, images.count),
           images, config);
  }
  ChooseCropSize(choices.crop_size, images, config);
  if (has_open_epochs) {
    Choose(kEpochs, choices.num_epochs, WhyEpochs(choices, images.count), images, config);
  }
  return absl::OkStatus();
}

bool IsForOneImage(const ConfigNode& config) {
  const ConfigNode* batch_size = config.FindPath(kBatchSize);
  return batch_size != nullptr && batch_size->location().file == kPlace && batch_size->AsInt().value_or(0) == 1;
}

}  // namespace ssl
