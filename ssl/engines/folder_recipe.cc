// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/folder_recipe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/core_options.h"
#include "ssl/core/recorded_run.h"
#include "ssl/core/saved_settings.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/dataset_builder.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/checkpoint_settings.h"
#include "ssl/engines/left_at_default.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

constexpr char kSection[] = "FOLDER_RECIPE";
constexpr char kPlace[] = "folder recipe";  // where a chosen value says that it stands
constexpr char kEpochs[] = "OPTIMIZER.num_epochs";
constexpr char kBatchSize[] = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
constexpr char kTransforms[] = "DATA.TRAIN.TRANSFORMS";
constexpr char kSize[] = "size";
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

// The keys that are to be chosen.
std::vector<std::string> OpenPaths(const ConfigNode& config, const ConfigNode& defaults) {
  std::vector<std::string> open;
  for (const char* path : {kBatchSize, kEpochs}) {
    if (IsOpen(config, defaults, path)) open.push_back(path);
  }
  const ConfigNode* transforms = config.FindPath(kTransforms);
  for (size_t i = 0; transforms != nullptr && i < transforms->items().size(); ++i) {
    const ConfigNode* size = transforms->items()[i].Find(kSize);
    if (size != nullptr && size->text() == kAuto) open.push_back(absl::StrCat(kTransforms, ".", i, ".", kSize));
  }
  return open;
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

void Choose(const std::string& path, int64_t value, const std::string& why, const CountedImages& images,
            ConfigNode* config) {
  config->SetPath(path, Chosen(value));
  Log(images, absl::StrCat("config.", path, "=", value), why);
}

std::string WhyCropSize(const FolderChoices& choices) {
  return choices.crop_size == kLargeCrop ? "few images leave time for large crops"
                                         : "many images take the time of larger crops";
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

bool HasDataOf(const RecordedRun& run, const ConfigNode& config) {
  constexpr char kPaths[] = "DATA.TRAIN.DATA_PATHS";
  const ConfigNode* now = config.FindPath(kPaths);
  return now != nullptr && NamesSamePlaces(run.settings, kPaths, *now);
}

// The run in CHECKPOINT.DIR, whose choices stay; none where a training removes it.
std::optional<RecordedRun> RunThatHasChosen(const ConfigNode& config) {
  const absl::StatusOr<TaskOptions> task = ReadTaskOptions(config);
  if (!task.ok() || task->checkpoint.directory.empty()) return std::nullopt;
  std::optional<RecordedRun> run = FindRecordedRun(task->checkpoint.directory, PosixFileSystem());
  if (!run.has_value() || !task->checkpoint.overwrite_existing) return run;
  const bool goes_on = task->checkpoint.auto_resume && HasDataOf(*run, config);
  return goes_on ? std::move(run) : std::nullopt;
}

// The value that the run had at `path`; below 0 where it had nothing that can stand there.
int64_t ValueOfRun(const RecordedRun& run, const std::string& path, const ConfigNode& config) {
  const std::string section = absl::StartsWith(path, kTransforms) ? kTransforms : path;
  const auto saved = run.settings.find(section);
  if (saved == run.settings.end()) return -1;
  const absl::StatusOr<ConfigNode> value = ReadSavedSetting(saved->second, run.origin);
  if (!value.ok()) return -1;
  if (section == path) return value->AsInt().value_or(-1);
  // "1.size", of the transform that stands there now.
  const std::vector<std::string> place = absl::StrSplit(path.substr(section.size() + 1), '.');
  const ConfigNode* then = value->FindPath(absl::StrCat(place[0], ".name"));
  const ConfigNode* now = config.FindPath(absl::StrCat(kTransforms, ".", place[0], ".name"));
  const ConfigNode* size = value->FindPath(absl::StrCat(place[0], ".", kSize));
  const bool is_same = then != nullptr && now != nullptr && then->text() == now->text() && size != nullptr;
  return is_same ? size->AsInt().value_or(-1) : -1;
}

// Takes what the run had for `open`, and returns what is open still.
std::vector<std::string> KeepChoices(const RecordedRun& run, const std::vector<std::string>& open,
                                     const Registries& registries, int64_t ranks, ConfigNode* config) {
  const bool has_other_data = !HasDataOf(run, *config);
  std::vector<std::string> rest;
  std::vector<std::string> kept;
  for (const std::string& path : open) {
    int64_t value = ValueOfRun(run, path, *config);
    if (path == kBatchSize && value > 0) {
      value = std::max<int64_t>(1, value * run.ranks / ranks);
      if (has_other_data) value = std::clamp<int64_t>(CountImages(registries, *config).count / ranks, 1, value);
    }
    if (value <= 0) {
      rest.push_back(path);
      continue;
    }
    config->SetPath(path, Chosen(value));
    kept.push_back(absl::StrCat("config.", path, "=", value));
  }
  if (!kept.empty()) {
    SSL_LOG(INFO) << "folder recipe: " << absl::StrJoin(kept, ", ") << ", as the run that lies in "
                  << config->FindPath("CHECKPOINT.DIR")->text() << " has it (" << run.origin << ")";
  }
  return rest;
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
  std::vector<std::string> open = OpenPaths(*config, registries.options.Defaults());
  if (open.empty()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(*config));
  const std::optional<RecordedRun> run = RunThatHasChosen(*config);
  if (run.has_value()) open = KeepChoices(*run, open, registries, world.ranks(), config);
  if (open.empty()) return absl::OkStatus();
  const CountedImages images = CountImages(registries, *config);
  const FolderChoices choices = ChooseForFolder(images.count);
  for (const std::string& path : open) {
    if (path == kBatchSize) {
      Choose(path, std::max<int64_t>(1, choices.batch_size / world.ranks()), WhyBatchSize(choices, images.count),
             images, config);
    } else if (path == kEpochs) {
      Choose(path, choices.num_epochs, WhyEpochs(choices, images.count), images, config);
    } else {
      Choose(path, choices.crop_size, WhyCropSize(choices), images, config);
    }
  }
  return absl::OkStatus();
}

bool IsForOneImage(const ConfigNode& config) {
  const ConfigNode* batch_size = config.FindPath(kBatchSize);
  return batch_size != nullptr && batch_size->location().file == kPlace && batch_size->AsInt().value_or(0) == 1;
}

}  // namespace ssl
