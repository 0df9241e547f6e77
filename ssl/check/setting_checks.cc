// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/setting_checks.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/head_outputs.h"
#include "ssl/core/shared_options.h"
#include "ssl/data/data_options.h"
#include "ssl/engines/folder_recipe.h"

namespace ssl {
namespace {

constexpr char kAllowChanges[] = "CHECKPOINT.ALLOW_CHANGES";
constexpr char kVirtualRanks[] = "DISTRIBUTED.VIRTUAL_RANKS";
constexpr char kInputMapping[] = "MODEL.MULTI_INPUT_HEAD_MAPPING";
constexpr absl::string_view kBatchSize = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";

int64_t Int(const ConfigNode& config, absl::string_view path, int64_t fallback) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr) return fallback;
  const absl::StatusOr<int64_t> value = node->AsInt();
  return value.ok() ? *value : fallback;
}

bool IsTrue(const ConfigNode& config, absl::string_view path) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr) return false;
  const absl::StatusOr<bool> value = node->AsBool();
  return value.ok() && *value;
}

std::string PlaceOf(const ConfigNode& config, absl::string_view path) {
  const ConfigNode* node = config.FindPath(path);
  return (node == nullptr ? SourceLocation() : node->location()).ToString();
}

// A wrong number of ranks is the resolvers' to report.
int64_t Ranks(const ConfigNode& config) { return ReadWorldShape(config).value_or(WorldShape()).ranks(); }

// Views of an image that the model sees in one pass: the smallest group of crops of one size, or the copies of the
// image; 1 without either.
int64_t SmallestViewGroup(const ConfigNode& config) {
  int64_t smallest = 1;
  for (const ConfigNode& transform : config.FindPath("DATA.TRAIN.TRANSFORMS")->items()) {
    if (const ConfigNode* copies = transform.Find("num_times")) smallest = copies->AsInt().value_or(1);
    const ConfigNode* crops = transform.Find("num_crops");
    if (crops == nullptr || crops->items().empty()) continue;
    smallest = INT64_MAX;
    for (const ConfigNode& item : crops->items()) smallest = std::min(smallest, item.AsInt().value_or(1));
  }
  return smallest;
}

void CheckBatchNorm(const ConfigNode& config, std::vector<std::string>* problems) {
  const bool freezes = IsTrue(config, "MODEL.FEATURE_EVAL_SETTINGS.EVAL_MODE_ON");
  if (freezes || config.FindPath("DATA.TRAIN.TRANSFORMS") == nullptr) return;
  const bool shares_statistics = IsTrue(config, "MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN");
  const int64_t batch = Int(config, kBatchSize, 2) * (shares_statistics ? Ranks(config) : 1);
  if (batch * SmallestViewGroup(config) != 1) return;
  problems->push_back(absl::StrCat(PlaceOf(config, kBatchSize), ": config.", kBatchSize,
                                   " is 1, with one view of a size: batch norm needs at least 2 samples"));
}

std::vector<int64_t> DivisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= number; ++divisor) {
    if (number % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

// Each process does as many as every other one.
void CheckVirtualRanks(const ConfigNode& config, std::vector<std::string>* problems) {
  const int64_t ranks = ReadVirtualRanks(config).value_or(0);
  const int64_t processes = ReadProcesses(config).value_or(WorldShape()).ranks();
  if (ranks % processes == 0) return;
  problems->push_back(absl::StrCat(PlaceOf(config, kVirtualRanks), ": config.", kVirtualRanks, " is ", ranks,
                                   ", which ", processes, " processes do not divide; start one of ",
                                   absl::StrJoin(DivisorsOf(ranks), ", ")));
}

void CheckTopK(const ConfigNode& config, std::vector<std::string>* problems) {
  const int64_t outputs = LastHeadOutputs(config);
  const ConfigNode* names = config.FindPath("METERS.names");
  if (outputs == 0 || names == nullptr) return;
  for (const ConfigNode& name : names->items()) {
    const std::string path = absl::StrCat("METERS.", name.text(), ".topk_values");
    const ConfigNode* values = config.FindPath(path);
    if (values == nullptr) continue;
    for (const ConfigNode& value : values->items()) {
      if (value.AsInt().value_or(0) <= outputs) continue;
      problems->push_back(absl::StrCat(value.location().ToString(), ": config.", path, " holds ", value.text(),
                                       ", expected at most ", outputs, ", the outputs of the last head (",
                                       PlaceOf(config, "MODEL.HEAD.PARAMS"), ")"));
    }
  }
}

void CheckTransformTypes(const ConfigNode& config, std::vector<std::string>* problems) {
  for (const char* path : {"DATA.TRAIN.TRANSFORMS", "DATA.TEST.TRANSFORMS"}) {
    const ConfigNode* list = config.FindPath(path);
    if (list == nullptr) continue;
    for (const ConfigNode& transform : list->items()) {
      const ConfigNode* type = transform.Find("transform_type");
      if (type == nullptr || type->is_null() || type->text() == "augly") continue;
      problems->push_back(absl::StrCat(type->location().ToString(), ": transform_type in config.", path, " is ",
                                       type->Describe(), ", expected none or 'augly'"));
    }
  }
}

// Of an image: all crops, or all copies, that the transforms of a split make.
int64_t Views(const ConfigNode& config, const std::string& split) {
  int64_t views = 1;
  const ConfigNode* transforms = config.FindPath(absl::StrCat(split, ".TRANSFORMS"));
  if (transforms == nullptr) return views;
  for (const ConfigNode& transform : transforms->items()) {
    if (const ConfigNode* copies = transform.Find("num_times")) views *= copies->AsInt().value_or(1);
    const ConfigNode* crops = transform.Find("num_crops");
    if (crops == nullptr || crops->items().empty()) continue;
    int64_t all = 0;
    for (const ConfigNode& item : crops->items()) all += item.AsInt().value_or(1);
    views *= all;
  }
  return views;
}

// A method that is trained on several views of an image computes its loss of as many, in a test phase, too.
void CheckTestViews(const ConfigNode& config, std::vector<std::string>* problems) {
  const int64_t views = Views(config, "DATA.TRAIN");
  const int64_t test_views = Views(config, "DATA.TEST");
  if (views == 1 || views == test_views || !IsTrue(config, "TEST_MODEL") || IsTrue(config, "TEST_ONLY")) return;
  problems->push_back(absl::StrCat(
      PlaceOf(config, "TEST_MODEL"), ": config.TEST_MODEL is true, and the test phase would have ", test_views,
      test_views == 1 ? " view" : " views", " of an image (config.DATA.TEST.TRANSFORMS) where training has ", views,
      " (config.DATA.TRAIN.TRANSFORMS, ", PlaceOf(config, "DATA.TRAIN.TRANSFORMS"),
      "); set config.TEST_MODEL=False (engine_name=knn evaluates), or give both the same views"));
}

// Texts of a list; of a list of lists, of the first entry of each.
std::vector<std::string> FirstTexts(const ConfigNode* list) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const ConfigNode& item : list->items()) {
    texts.push_back(item.items().empty() ? item.text() : item.items().front().text());
  }
  return texts;
}

// What a folder of one image comes to in several parts of a run, said once.
void CheckSeveralImages(const ConfigNode& config, std::vector<std::string>* problems) {
  constexpr char kPaths[] = "DATA.TRAIN.DATA_PATHS";
  if (Ranks(config) > 1 || !IsForOneImage(config)) return;
  problems->push_back(absl::StrCat(PlaceOf(config, kPaths), ": config.", kPaths, ": ",
                                   absl::StrJoin(FirstTexts(config.FindPath(kPaths)), ", "),
                                   " has 1 image, expected at least 2, for a training compares each with others"));
}

// A model that maps inputs by name takes no views, and one that does not takes nothing else.
void CheckInputKeys(const ConfigNode& config, const std::string& split, std::vector<std::string>* problems) {
  const ConfigNode* source = config.FindPath(absl::StrCat("DATA.", split, ".BASE_DATASET"));
  // Another program's reads no such key.
  if (source != nullptr && source->text() != DataSplitOptions().base_dataset) return;
  const std::string path = absl::StrCat("DATA.", split, ".INPUT_KEY_NAMES");
  const std::vector<std::string> keys = FirstTexts(config.FindPath(path));
  const std::vector<std::string> mapped = FirstTexts(config.FindPath(kInputMapping));
  const auto is_mapped = [&](const std::string& key) {
    return std::find(mapped.begin(), mapped.end(), key) != mapped.end();
  };
  const bool fits =
      mapped.empty() ? keys.size() <= 1 : keys.size() > 1 && std::any_of(keys.begin(), keys.end(), is_mapped);
  if (fits) return;
  problems->push_back(absl::StrCat(PlaceOf(config, path), ": config.", path, " is [", absl::StrJoin(keys, ", "),
                                   "] and config.", kInputMapping, " (", PlaceOf(config, kInputMapping), ") maps ",
                                   mapped.empty() ? "nothing" : absl::StrJoin(mapped, ", "),
                                   "; expected several inputs and a head for each, or one input and no mapping"));
}

// Found at the first pass through the trunk otherwise. A model of another program may take anything.
void CheckImageChannels(const ConfigNode& config, const std::string& split, std::vector<std::string>* problems) {
  const ConfigNode* model = config.FindPath("MODEL.BASE_MODEL_NAME");
  const ConfigNode* sources = config.FindPath(absl::StrCat("DATA.", split, ".DATA_SOURCES"));
  const ConfigNode* type = config.FindPath("MODEL.INPUT_TYPE");
  const std::string path = absl::StrCat("DATA.", split, ".IMAGE_CHANNELS");
  const bool is_ours = model == nullptr || model->text() == ModelNameOptions().base_model_name;
  const bool is_read = sources != nullptr && !sources->items().empty();
  const bool takes_one = type != nullptr && type->text() == "lab";
  if (!is_ours || !is_read || takes_one || Int(config, path, 3) == 3) return;
  problems->push_back(absl::StrCat(
      PlaceOf(config, path), ": config.", path, " is 1, but the trunk takes 3 channels, as config.MODEL.INPUT_TYPE is ",
      type == nullptr ? "rgb" : type->text(), "; expected 3: grey images are read as three equal channels. A trunk of ",
      "one channel takes config.MODEL.INPUT_TYPE=lab, IMAGE_CHANNELS=1 and Grayscale among TRANSFORMS"));
}

void CollectKeys(const ConfigNode& node, const std::string& path, std::vector<std::string>* keys) {
  if (!path.empty()) keys->push_back(path);
  for (const auto& [key, value] : node.entries()) CollectKeys(value, JoinPath(path, key), keys);
}

// A mistyped key would be found only when the run that it was meant to let go on is refused, if ever.
void CheckAllowedChanges(const ConfigNode& config, std::vector<std::string>* problems) {
  const ConfigNode* allowed = config.FindPath(kAllowChanges);
  if (allowed == nullptr || !allowed->is_list() || allowed->items().empty()) return;
  // What a checkpoint records beside the keys (ssl/core/run_identity.h).
  std::vector<std::string> keys = {"DATA.TRAIN.classes", "DATA.TRAIN.num_samples", "DATA.TRAIN.samples",
                                   "DATA.TRAIN.updates_per_epoch"};
  CollectKeys(config, "", &keys);
  for (const ConfigNode& item : allowed->items()) {
    absl::string_view key = item.text();
    absl::ConsumePrefix(&key, "config.");
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    problems->push_back(absl::StrCat(item.location().ToString(), ": config.", kAllowChanges, " has '", key,
                                     "', which is no key", DidYouMean(key, keys)));
  }
}

}  // namespace

std::vector<std::string> ContradictingSettings(const ConfigNode& config, bool trains) {
  std::vector<std::string> problems;
  CheckVirtualRanks(config, &problems);
  CheckBatchNorm(config, &problems);
  CheckTopK(config, &problems);
  CheckTransformTypes(config, &problems);
  CheckAllowedChanges(config, &problems);
  CheckImageChannels(config, "TRAIN", &problems);
  CheckImageChannels(config, "TEST", &problems);
  if (trains) {
    CheckSeveralImages(config, &problems);
    CheckTestViews(config, &problems);
    CheckInputKeys(config, "TRAIN", &problems);
    if (IsTrue(config, "TEST_MODEL")) CheckInputKeys(config, "TEST", &problems);
  }
  return problems;
}

}  // namespace ssl
