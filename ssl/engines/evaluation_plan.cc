// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"

namespace ssl {
namespace {

constexpr char kTrain[] = "DATA.TRAIN";
constexpr char kTest[] = "DATA.TEST";
constexpr double kHeldOut = 0.1;
// Crops of photographs are cut from a resized image that is 256/224 times as large, as ImageNet is evaluated; smaller
// images are used whole.
constexpr int64_t kSmallestPhotograph = 64;  // pixels

bool HasItems(const ConfigNode& section, absl::string_view key) {
  const ConfigNode* list = section.Find(key);
  return list != nullptr && !list->items().empty();
}

std::string FirstItem(const ConfigNode& section, absl::string_view key) {
  return HasItems(section, key) ? section.Find(key)->items().front().text() : "";
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
    if (const ConfigNode* side = transform.Find("size")) size = *side;
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

// The training transforms that change how pixels become numbers, not which pixels are seen.
void AppendConversions(const ConfigNode& transforms, ConfigNode* list) {
  static constexpr absl::string_view kNames[] = {"Grayscale", "ToTensor", "Normalize"};
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* name = transform.Find("name");
    if (name == nullptr || std::find(std::begin(kNames), std::end(kNames), name->text()) == std::end(kNames)) continue;
    list->Append(transform);
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
  plan->choices.push_back(
      absl::StrCat("images go through ", Describe(transforms),
                   ", from the transforms of training; config.DATA.TEST.TRANSFORMS says otherwise"));
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

// The test folder beside a training folder; "" when there is none.
std::string FolderBeside(const std::string& training, FileSystem& file_system) {
  absl::string_view parent = absl::StripSuffix(training, "/");
  const bool named = absl::ConsumeSuffix(&parent, "train") || absl::ConsumeSuffix(&parent, "training");
  if (!named || !(parent.empty() || parent.back() == '/')) return "";
  for (const char* name : {"val", "test"}) {
    const std::string folder = absl::StrCat(parent, name);
    if (SharesClasses(folder, training, file_system)) return folder;
  }
  return "";
}

// Whether SPLIT: test of the data source is a test set of its own. A source of the host program may not know SPLIT.
bool HasTestPart(const ConfigNode& train) {
  const std::string source = FirstItem(train, "DATA_SOURCES");
  if (source == "synthetic" || source == "torchvision_dataset") return true;
  return (source == "disk_folder" || source == "disk_filelist") && !HasItems(train, "DATA_PATHS");
}

// DATA.TRAIN with the keys of DATA.TEST that are not their defaults. Where the data lie may be among them.
ConfigNode OverlaidSplit(const ConfigNode& train, const ConfigNode& test, const ConfigNode& defaults) {
  ConfigNode split = train;
  for (const auto& [key, value] : test.entries()) {
    const ConfigNode* usual = defaults.Find(key);
    if (usual == nullptr || *usual != value) split.Set(key, value);
  }
  // How training takes its samples says nothing about a test, which visits all.
  for (const char* key :
       {"SPLIT", "TRANSFORMS", "COLLATE_FUNCTION", "COLLATE_FUNCTION_PARAMS", "DROP_LAST", "CACHE", "CACHE_BYTES",
        "ENABLE_QUEUE_DATASET", "MINI_EPOCHS", "MINI_EPOCH_GROUPS", "POWER_LAW_SAMPLER", "STRATIFIED_SAMPLER",
        "USE_DEBUGGING_SAMPLER", "USE_STATEFUL_DISTRIBUTED_SAMPLER"}) {
    if (const ConfigNode* own = test.Find(key)) split.Set(key, *own);
  }
  constexpr char kBroken[] = "BROKEN_IMAGES";
  const ConfigNode* own = test.Find(kBroken);
  if (own != nullptr && split.Find(kBroken)->text() == "skip") split.Set(kBroken, *own);
  return split;
}

// Another data set than that of training: its size does not follow from DATA.TRAIN's, nor which part is held out.
void TakeWhole(const ConfigNode& test, ConfigNode* split) {
  for (const char* key : {"DATA_LIMIT", "DATA_LIMIT_SAMPLING", "HOLD_OUT_FRACTION"}) {
    if (const ConfigNode* own = test.Find(key)) split->Set(key, *own);
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
      "one, config.DATA.TRAIN.HOLD_OUT_FRACTION another share");
}

void ChooseTestSet(const ConfigNode& defaults, FileSystem& file_system, EvaluationPlan* plan) {
  ConfigNode train = plan->config.Section(kTrain);
  const ConfigNode test = plan->config.Section(kTest);
  if (HasItems(test, "DATA_SOURCES") || !HasItems(train, "DATA_SOURCES")) return;
  constexpr char kSaysOtherwise[] = "; config.DATA.TEST.DATA_PATHS=[...] names another one";
  ConfigNode split = OverlaidSplit(train, test, defaults.Section(kTest));
  const std::string source = FirstItem(train, "DATA_SOURCES");
  const std::string path = FirstItem(train, "DATA_PATHS");
  const std::string beside = source == "disk_folder" ? FolderBeside(path, file_system) : "";
  std::string choice;
  if (HasItems(test, "DATA_PATHS")) {
    TakeWhole(test, &split);
    choice = absl::StrCat("the test set is ", FirstItem(test, "DATA_PATHS"), ", read as DATA.TRAIN is");
  } else if (HasTestPart(train)) {
    if (source != "synthetic") TakeWhole(test, &split);  // DATA_LIMIT is the size of that one
    choice = absl::StrCat("the test set is the part SPLIT: test of the data set of DATA.TRAIN", kSaysOtherwise);
  } else if (!beside.empty()) {
    TakeWhole(test, &split);
    split.Set("DATA_PATHS", ConfigNode::FromStrings({beside}));
    choice = absl::StrCat("the test set is ", beside, ", beside the training folder", kSaysOtherwise);
  } else {
    choice = HoldOut(test, &train, &split);
  }
  plan->choices.push_back(std::move(choice));
  plan->config.SetPath(kTrain, std::move(train));
  plan->config.SetPath(kTest, std::move(split));
}

// Beside the engine's own results: what was chosen stands in no configuration file.
void NoteTransforms(const std::string& engine, const ConfigNode& config, ConfigNode* results) {
  const ConfigNode* transforms = config.Section(kTest).Find("TRANSFORMS");
  if (results->Find(engine) == nullptr || transforms == nullptr || transforms->items().empty()) return;
  results->SetPath(absl::StrCat(engine, ".transforms"), *transforms);
}

}  // namespace

bool DescribesEvaluation(const ConfigNode& config) { return HasItems(config.Section(kTest), "TRANSFORMS"); }

EvaluationPlan PlanEvaluation(const ConfigNode& config, const ConfigNode& defaults, FileSystem& file_system) {
  EvaluationPlan plan{config, {}};
  ChooseTestSet(defaults, file_system, &plan);
  ChooseTransforms(&plan);
  return plan;
}

EngineContext WithConfig(const ConfigNode& config, const EngineContext& context) {
  EngineContext complete{config,         context.registries,  context.communicator,
                         context.stop,   context.file_system, context.run_directory,
                         context.results};
  complete.held_directory = context.held_directory;
  complete.progress = context.progress;
  return complete;
}

absl::StatusOr<EngineReport> WithEvaluationPlan(const std::string& engine, EngineContext& context,
                                                absl::FunctionRef<absl::StatusOr<EngineReport>(EngineContext&)> run) {
  const EvaluationPlan plan =
      PlanEvaluation(context.config, context.registries.options.Defaults(), context.file_system);
  for (const std::string& choice : plan.choices) SSL_LOG(INFO) << "evaluation: " << choice;
  EngineContext complete = WithConfig(plan.config, context);
  absl::StatusOr<EngineReport> report = run(complete);
  if (absl::IsCancelled(report.status())) return StoppedReport(engine);
  if (report.ok() && !report->stopped) NoteTransforms(engine, complete.config, &context.results);
  return report;
}

absl::Status CheckWithEvaluationPlan(EngineContext& context, absl::FunctionRef<absl::Status(EngineContext&)> check) {
  const EvaluationPlan plan =
      PlanEvaluation(context.config, context.registries.options.Defaults(), context.file_system);
  EngineContext complete = WithConfig(plan.config, context);
  return check(complete);
}

EngineReport StoppedReport(const std::string& engine) {
  EngineReport report;
  report.stopped = true;
  report.summary = absl::StrCat(engine, ": stopped before the end, nothing is written, and what was there stays");
  return report;
}

void SetResults(const std::string& engine, const ConfigNode& findings, const EvaluatedWeights& weights,
                ConfigNode* results) {
  const ConfigNode* earlier = results->FindPath(absl::StrCat(engine, ".weights"));
  const bool are_the_same = earlier != nullptr && earlier->text() == weights.description;
  ConfigNode section = are_the_same ? *results->Find(engine) : ConfigNode::Map();
  for (const auto& [key, value] : findings.entries()) section.Set(key, value);
  section.Set("weights", ConfigNode::FromString(weights.description));
  if (weights.iteration >= 0) section.Set("iteration", ConfigNode::FromInt(weights.iteration));
  results->Set(engine, std::move(section));
}

}  // namespace ssl
