// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/config/same_value.h"
#include "ssl/engines/images_of_run.h"
#include "ssl/engines/left_at_default.h"

namespace ssl {
namespace {

constexpr char kTrain[] = "DATA.TRAIN";
constexpr char kTest[] = "DATA.TEST";
constexpr char kDiskFolder[] = "disk_folder";
constexpr char kFileList[] = "disk_filelist";
constexpr char kSynthetic[] = "synthetic";
// An entry for each of DATA_SOURCES, or none.
constexpr const char* kSourceLists[] = {"DATA_SOURCES", "DATA_PATHS", "DATASET_NAMES", "LABEL_SOURCES", "LABEL_PATHS"};
constexpr double kHeldOut = 0.1;
// Crops of photographs are cut from a resized image that is 256/224 times as large, as ImageNet is evaluated; smaller
// images are used whole.
constexpr int64_t kSmallestPhotograph = 64;  // pixels

bool HasItems(const ConfigNode& section, absl::string_view key) {
  const ConfigNode* list = section.Find(key);
  return list != nullptr && !list->items().empty();
}

ConfigNode NamedMap(absl::string_view name) {
  ConfigNode map = ConfigNode::Map();
  map.Set("name", ConfigNode::FromString(name));
  return map;
}

// The side, or [height, width], that the last transform with a size gives; null when none has one. Of several crop
// sizes the largest counts: that of the global crops.
ConfigNode CropSize(const ConfigNode& transforms) {
  ConfigNode size;
  for (const ConfigNode& transform : transforms.items()) {
    for (const char* key : {"size", "crop_size_image"}) {
      const ConfigNode* side = transform.Find(key);
      if (side != nullptr && (side->is_scalar() || !side->items().empty())) size = *side;
    }
    const ConfigNode* sides = transform.Find("size_crops");
    if (sides == nullptr) continue;
    int64_t largest = 0;
    for (const ConfigNode& side : sides->items()) largest = std::max(largest, side.AsInt().value_or(0));
    if (largest > 0) size = ConfigNode::FromInt(largest);
  }
  return size;
}

void AppendCrop(const ConfigNode& size, ConfigNode* list) {
  if (size.is_null()) return;
  const int64_t side = size.AsInt().value_or(0);
  ConfigNode resize = NamedMap("Resize");
  resize.Set("size", side < kSmallestPhotograph ? size : ConfigNode::FromInt(std::llround(side * 256.0 / 224.0)));
  list->Append(std::move(resize));
  if (size.is_list()) return;  // Resize gives both sides already
  ConfigNode crop = NamedMap("CenterCrop");
  crop.Set("size", size);
  list->Append(std::move(crop));
}

// `transform` as it treats the first view, which is the only one of an evaluation; null: it is for others.
ConfigNode OfFirstView(const ConfigNode& transform) {
  const ConfigNode* indices = transform.Find("indices");
  if (indices == nullptr || indices->items().empty()) return transform;
  const bool has_first = std::any_of(indices->items().begin(), indices->items().end(),
                                     [](const ConfigNode& index) { return index.text() == "0"; });
  if (!has_first) return ConfigNode::Null();
  ConfigNode plain = ConfigNode::Map(transform.location());
  for (const auto& [key, value] : transform.entries()) {
    if (key != "indices") plain.Set(key, value);
  }
  return plain;
}

// The training transforms that change how pixels become numbers, not which pixels are seen.
void AppendConversions(const ConfigNode& transforms, ConfigNode* list) {
  static constexpr absl::string_view kNames[] = {"Grayscale",   "ImgPil2LabTensor", "ImgPilToRawTensor",
                                                 "ImgToTensor", "Normalize",        "ToTensor"};
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* name = transform.Find("name");
    if (name == nullptr || std::find(std::begin(kNames), std::end(kNames), name->text()) == std::end(kNames)) continue;
    ConfigNode conversion = OfFirstView(transform);
    if (!conversion.is_null()) list->Append(std::move(conversion));
  }
}

std::string Describe(const ConfigNode& transforms) {
  std::vector<std::string> texts;
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* size = transform.Find("size");
    const bool has_side = size != nullptr && size->is_scalar();
    texts.push_back(absl::StrCat(transform.Find("name")->text(), has_side ? absl::StrCat(" ", size->text()) : ""));
  }
  return absl::StrJoin(texts, ", ");
}

void ChooseTransforms(EvaluationPlan* plan) {
  const ConfigNode* training = plan->config.Section(kTrain).Find("TRANSFORMS");
  if (DescribesEvaluation(plan->config) || training == nullptr || training->items().empty()) return;
  ConfigNode transforms = ConfigNode::List(training->location());
  AppendCrop(CropSize(*training), &transforms);
  AppendConversions(*training, &transforms);
  plan->choices.push_back(absl::StrCat("images go through ", Describe(transforms),
                                       ", from config.DATA.TRAIN.TRANSFORMS (", training->location().ToString(),
                                       "); config.DATA.TEST.TRANSFORMS says otherwise"));
  plan->config.SetPath(absl::StrCat(kTest, ".TRANSFORMS"), std::move(transforms));
  plan->config.SetPath(absl::StrCat(kTest, ".COLLATE_FUNCTION"), ConfigNode::FromString("default_collate"));
  plan->config.SetPath(absl::StrCat(kTest, ".COLLATE_FUNCTION_PARAMS"), ConfigNode::Map());
}

// Whether `folder` has a folder for one of the classes of `training`.
bool SharesClasses(const std::string& folder, const std::string& training, FileSystem& file_system) {
  const absl::StatusOr<std::vector<std::string>> classes = file_system.List(training);
  if (!classes.ok()) return false;
  return std::any_of(classes->begin(), classes->end(), [&](const std::string& name) {
    return file_system.IsDirectory(absl::StrCat(folder, "/", name)) &&
           file_system.IsDirectory(absl::StrCat(training, "/", name));
  });
}

// The test folder beside a training folder, below `root` where that is not ""; "" when there is none.
std::string FolderBeside(const std::string& training, const std::string& root, FileSystem& file_system) {
  absl::string_view parent = absl::StripSuffix(training, "/");
  const bool named = absl::ConsumeSuffix(&parent, "train") || absl::ConsumeSuffix(&parent, "training");
  if (!named || !(parent.empty() || parent.back() == '/')) return "";
  for (const char* name : {"val", "test"}) {
    const std::string folder = absl::StrCat(parent, name);
    const bool may_be_read = root.empty() || absl::StartsWith(folder, absl::StrCat(absl::StripSuffix(root, "/"), "/"));
    if (may_be_read && SharesClasses(folder, training, file_system)) return folder;
  }
  return "";
}

std::vector<std::string> Texts(const ConfigNode& section, absl::string_view key) {
  std::vector<std::string> texts;
  if (!HasItems(section, key)) return texts;
  for (const ConfigNode& item : section.Find(key)->items()) texts.push_back(item.text());
  return texts;
}

bool AllAre(const std::vector<std::string>& texts, absl::string_view value) {
  return std::all_of(texts.begin(), texts.end(), [value](const std::string& text) { return text == value; });
}

// The test folders beside the folders of all sources; empty where one has none.
std::vector<std::string> FoldersBeside(const ConfigNode& train, FileSystem& file_system) {
  const std::vector<std::string> sources = Texts(train, "DATA_SOURCES");
  const std::vector<std::string> paths = Texts(train, "DATA_PATHS");
  // Labels in files are of the training images alone.
  const bool has_own_labels = !HasItems(train, "LABEL_PATHS");
  if (!AllAre(sources, kDiskFolder) || paths.size() != sources.size() || !has_own_labels) return {};
  const ConfigNode* root = train.Find("PATHS_BELOW");
  std::vector<std::string> folders;
  for (const std::string& path : paths) {
    folders.push_back(FolderBeside(path, root == nullptr ? "" : root->text(), file_system));
    if (folders.back().empty()) return {};
  }
  return folders;
}

// Whether SPLIT: test of a data source is a test set of its own. A source of the host program may not know SPLIT.
bool HasTestPart(const std::string& source, bool has_paths) {
  if (source == kSynthetic || source == "torchvision_dataset") return true;
  return (source == kDiskFolder || source == kFileList) && !has_paths;
}

// A file that says even that DATA.TEST has no DATA_SOURCES, or, where it has some, no TRANSFORMS, has every key, as
// train_config.yaml does: who set which cannot be told there. test: one that lacks one of the two.
bool HasEveryKey(const std::string& file, const ConfigNode& test, const ConfigNode& defaults) {
  const char* key = HasItems(test, "DATA_SOURCES") ? "TRANSFORMS" : "DATA_SOURCES";
  const ConfigNode* none = test.Find(key);
  return !IsLeftAtDefault(none, defaults.Find(key)) && none->location().file == file;
}

// Whether `key` of DATA.TEST is somebody's word. A value that is its default's is told by its place, but for an empty
// list, which names nothing.
bool IsSaid(const std::string& key, const ConfigNode& test, const ConfigNode& defaults) {
  const ConfigNode* value = test.Find(key);
  const ConfigNode* usual = defaults.Find(key);
  if (IsLeftAtDefault(value, usual)) return false;
  if (usual == nullptr || !SameValue(*value, *usual)) return true;
  return !HasEveryKey(value->location().file, test, defaults) && (value->is_scalar() || !value->items().empty());
}

// DATA.TRAIN with the keys of DATA.TEST that somebody has set. Where the data lie may be among them.
ConfigNode OverlaidSplit(const ConfigNode& train, const ConfigNode& test, const ConfigNode& defaults) {
  ConfigNode split = train;
  for (const auto& [key, value] : test.entries()) {
    if (IsSaid(key, test, defaults)) split.Set(key, value);
  }
  // How training takes its samples says nothing about a test, which visits all.
  for (const char* key : {"SPLIT", "AUGMENT_ON", "TRANSFORMS", "COLLATE_FUNCTION", "COLLATE_FUNCTION_PARAMS",
                          "INPUT_KEY_NAMES", "TARGET_KEY_NAMES", "DROP_LAST", "CACHE", "CACHE_BYTES",
                          "ENABLE_QUEUE_DATASET", "MINI_EPOCHS", "MINI_EPOCH_GROUPS", "POWER_LAW_SAMPLER",
                          "STRATIFIED_SAMPLER", "USE_DEBUGGING_SAMPLER", "USE_STATEFUL_DISTRIBUTED_SAMPLER"}) {
    if (const ConfigNode* own = test.Find(key)) split.Set(key, *own);
  }
  constexpr char kBroken[] = "BROKEN_IMAGES";
  const ConfigNode* own = test.Find(kBroken);
  if (own != nullptr && split.Find(kBroken)->text() == "skip") split.Set(kBroken, *own);
  return split;
}

// Another data set than that of training: neither its size nor its labels follow from DATA.TRAIN's, nor which part is
// held out.
void TakeWhole(const ConfigNode& test, ConfigNode* split) {
  for (const char* key : {"DATA_LIMIT", "DATA_LIMIT_SAMPLING", "HOLD_OUT_FRACTION", "LABEL_PATHS"}) {
    if (const ConfigNode* own = test.Find(key)) split->Set(key, *own);
  }
}

// As many sources as DATA.TEST.DATA_PATHS has, of the kind of DATA.TRAIN's.
void FitSources(const ConfigNode& test, ConfigNode* split) {
  const std::vector<std::string> kinds = Texts(*split, "DATA_SOURCES");
  const size_t count = test.Find("DATA_PATHS")->items().size();
  if (kinds.size() == count) return;
  const std::string kind = AllAre(kinds, kinds.front()) ? kinds.front() : kDiskFolder;
  split->Set("DATA_SOURCES", ConfigNode::FromStrings(std::vector<std::string>(count, kind)));
  if (const ConfigNode* names = test.Find("DATASET_NAMES")) split->Set("DATASET_NAMES", *names);
  const std::vector<std::string> labels = Texts(*split, "LABEL_SOURCES");
  if (labels.empty()) return;
  const bool are_files = std::count(labels.begin(), labels.end(), kFileList) > 0;
  split->Set("LABEL_SOURCES", ConfigNode::FromStrings(std::vector<std::string>(count, are_files ? kFileList : kind)));
}

// The sources of `train` that have a test part: their places among all.
std::vector<size_t> SourcesWithTestPart(const ConfigNode& train) {
  const std::vector<std::string> sources = Texts(train, "DATA_SOURCES");
  std::vector<size_t> places;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (HasTestPart(sources[i], HasItems(train, "DATA_PATHS"))) places.push_back(i);
  }
  return places;
}

// Leaves the entries of those sources.
void KeepSources(const std::vector<size_t>& places, ConfigNode* split) {
  const size_t count = split->Find("DATA_SOURCES")->items().size();
  for (const char* key : kSourceLists) {
    const ConfigNode* list = split->Find(key);
    if (list == nullptr || list->items().size() != count) continue;
    ConfigNode kept = ConfigNode::List(list->location());
    for (const size_t place : places) kept.Append(list->items()[place]);
    split->Set(key, std::move(kept));
  }
}

// The two parts are of the whole data set, by one draw; how much of its part training takes says nothing about a test.
std::string HoldOut(const ConfigNode& test, ConfigNode* train, ConfigNode* split) {
  for (const char* key : {"DATA_LIMIT", "DATA_LIMIT_SAMPLING"}) {
    if (const ConfigNode* own = test.Find(key)) split->Set(key, *own);
  }
  constexpr char kSeed[] = "DATA_LIMIT_SAMPLING.SEED";
  if (const ConfigNode* seed = train->FindPath(kSeed)) split->SetPath(kSeed, *seed);
  double fraction = kHeldOut;
  if (const ConfigNode* own = train->Find("HOLD_OUT_FRACTION")) fraction = own->AsDouble().value_or(0.0);
  if (fraction == 0.0) fraction = kHeldOut;
  for (ConfigNode* part : {train, split}) part->Set("HOLD_OUT_FRACTION", ConfigNode::FromDouble(fraction));
  return absl::StrCat(
      "the test set is ", 100 * fraction, "% of the data set of DATA.TRAIN, of each class where it has classes, which ",
      "neighbours and classifiers do not see (pre-training may have); config.DATA.TEST.DATA_PATHS=[...] names another "
      "one, config.DATA.TRAIN.HOLD_OUT_FRACTION another share, or none with 0");
}

// True when somebody has said that nothing is to be held out.
bool HoldsNothingOut(const ConfigNode& train, const ConfigNode& test, const ConfigNode& defaults) {
  constexpr char kFraction[] = "HOLD_OUT_FRACTION";
  const ConfigNode* fraction = train.Find(kFraction);
  return fraction != nullptr && fraction->AsDouble().value_or(1.0) == 0.0 &&
         !IsLeftAtDefault(fraction, defaults.Section(kTrain).Find(kFraction)) &&
         !HasEveryKey(fraction->location().file, test, defaults.Section(kTest));
}

void ChooseTestSet(const ConfigNode& defaults, FileSystem& file_system, EvaluationPlan* plan) {
  ConfigNode train = plan->config.Section(kTrain);
  const ConfigNode test = plan->config.Section(kTest);
  if (HasItems(test, "DATA_SOURCES") || !HasItems(train, "DATA_SOURCES")) return;
  constexpr char kSaysOtherwise[] = "; config.DATA.TEST.DATA_PATHS=[...] names another one";
  ConfigNode split = OverlaidSplit(train, test, defaults.Section(kTest));
  const std::vector<std::string> beside = FoldersBeside(train, file_system);
  const std::vector<size_t> with_test_part = SourcesWithTestPart(train);
  std::string choice;
  if (HasItems(test, "DATA_PATHS")) {
    TakeWhole(test, &split);
    FitSources(test, &split);
    choice =
        absl::StrCat("the test set is ", absl::StrJoin(Texts(test, "DATA_PATHS"), ", "), ", read as DATA.TRAIN is");
  } else if (!with_test_part.empty()) {
    KeepSources(with_test_part, &split);
    // DATA_LIMIT is the size of a synthetic one.
    if (!AllAre(Texts(split, "DATA_SOURCES"), kSynthetic)) TakeWhole(test, &split);
    choice = absl::StrCat("the test set is the part SPLIT: test of the data set of DATA.TRAIN", kSaysOtherwise);
  } else if (!beside.empty()) {
    TakeWhole(test, &split);
    split.Set("DATA_PATHS", ConfigNode::FromStrings(beside));
    choice =
        absl::StrCat("the test set is ", absl::StrJoin(beside, ", "), ", beside the training folder", kSaysOtherwise);
  } else if (HoldsNothingOut(train, test, defaults)) {
    plan->choices.push_back(
        "there is no test set: config.DATA.TRAIN.HOLD_OUT_FRACTION is 0; config.DATA.TEST.DATA_PATHS=[...] names one");
    return;
  } else {
    choice = HoldOut(test, &train, &split);
  }
  plan->choices.push_back(std::move(choice));
  plan->config.SetPath(kTrain, std::move(train));
  plan->config.SetPath(kTest, std::move(split));
}

// A test set of its own goes through the transforms of training: so its images are read as training reads them, too.
void ChooseReading(const ConfigNode& defaults, EvaluationPlan* plan) {
  const ConfigNode& train = plan->config.Section(kTrain);
  ConfigNode test = plan->config.Section(kTest);
  if (DescribesEvaluation(plan->config) || !HasItems(test, "DATA_SOURCES")) return;
  std::vector<std::string> taken;
  for (const char* key : kReadingKeys) {
    const ConfigNode* of_training = train.Find(key);
    const ConfigNode* own = test.Find(key);
    if (of_training == nullptr || IsSaid(key, test, defaults.Section(kTest))) continue;
    if (own != nullptr && SameValue(*own, *of_training)) continue;
    taken.push_back(absl::StrCat(kTest, ".", key, "=", of_training->text()));
    test.Set(key, *of_training);
  }
  if (taken.empty()) return;
  plan->choices.push_back(absl::StrCat("test images are read as those of training, with config.",
                                       absl::StrJoin(taken, ", config."), "; the same keys say otherwise"));
  plan->config.SetPath(kTest, std::move(test));
}

}  // namespace

bool DescribesEvaluation(const ConfigNode& config) { return HasItems(config.Section(kTest), "TRANSFORMS"); }

EvaluationPlan PlanEvaluation(const ConfigNode& config, const ConfigNode& defaults, FileSystem& file_system,
                              const RecordedRun* run) {
  EvaluationPlan plan{config, {}};
  if (run != nullptr && !DescribesEvaluation(config)) plan.choices = TakeImagesOfRun(*run, defaults, &plan.config);
  ChooseReading(defaults, &plan);
  ChooseTestSet(defaults, file_system, &plan);
  ChooseTransforms(&plan);
  return plan;
}

}  // namespace ssl
