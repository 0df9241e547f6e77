// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/named_components.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/vissl/vissl_names.h"

namespace ssl {
namespace {

constexpr char kEngine[] = "engine";
constexpr char kEngineKey[] = "engine_name";
constexpr char kTrainEngine[] = "train";
constexpr char kEstimateEngine[] = "estimate";

// A key that holds one name, or a list of names.
struct NamingKey {
  const char* kind;
  const char* path;  // from the root
};

constexpr NamingKey kNamingKeys[] = {
    {kEngine, kEngineKey},
    {"data set type", "config.DATA.TRAIN.BASE_DATASET"},
    {"data set type", "config.DATA.TEST.BASE_DATASET"},
    {"data source", "config.DATA.TRAIN.DATA_SOURCES"},
    {"data source", "config.DATA.TEST.DATA_SOURCES"},
    {"label source", "config.DATA.TRAIN.LABEL_SOURCES"},
    {"label source", "config.DATA.TEST.LABEL_SOURCES"},
    {"model", "config.MODEL.BASE_MODEL_NAME"},
    {"trunk", "config.MODEL.TRUNK.NAME"},
    {"loss", "config.LOSS.name"},
    {"meter", "config.METERS.name"},
    {"meter", "config.METERS.names"},
    {"optimizer", "config.OPTIMIZER.name"},
    {"parameter grouping", "config.OPTIMIZER.param_group_constructor"},
    {"train step", "config.TRAINER.TRAIN_STEP_NAME"},
};

class Collector {
 public:
  explicit Collector(const ConfigNode& root) : root_(root) {}

  std::vector<NamedComponent> Take() { return std::move(components_); }

  void AddNames(const NamingKey& key) {
    const ConfigNode* node = root_.FindPath(key.path);
    if (node == nullptr) return;
    Add(key.kind, *node, key.path);
    for (size_t i = 0; i < node->items().size(); ++i) Add(key.kind, node->items()[i], absl::StrCat(key.path, ".", i));
  }

  // An entry [name, {arguments}], or a list of entries.
  void AddHeads(const ConfigNode& entry, const std::string& path) {
    const std::vector<ConfigNode>& items = entry.items();
    if (items.empty()) return;
    if (items[0].is_scalar()) return Add("head", items[0], absl::StrCat(path, ".0"));
    for (size_t i = 0; i < items.size(); ++i) AddHeads(items[i], absl::StrCat(path, ".", i));
  }

  // Maps with a name, which may hold further ones below `nested`.
  void AddEntries(const char* kind, const ConfigNode* list, const std::string& path, const char* nested) {
    if (list == nullptr) return;
    for (size_t i = 0; i < list->items().size(); ++i) {
      AddEntry(kind, list->items()[i], absl::StrCat(path, ".", i), nested);
    }
  }

  void AddEntry(const char* kind, const ConfigNode& entry, const std::string& path, const char* nested) {
    const ConfigNode* type = entry.Find("transform_type");
    const bool is_augly = type != nullptr && type->text() == "augly";
    if (const ConfigNode* name = entry.Find("name")) {
      Add(is_augly ? "augly transform" : kind, *name, absl::StrCat(path, ".name"));
    }
    AddEntries(kind, entry.Find(nested), absl::StrCat(path, ".", nested), nested);
  }

 private:
  void Add(const char* kind, const ConfigNode& name, const std::string& path) {
    if (!name.text().empty()) components_.push_back({kind, name.text(), path, name.location()});
  }

  const ConfigNode& root_;
  std::vector<NamedComponent> components_;
};

}  // namespace

std::vector<NamedComponent> NamedComponents(const ConfigNode& root) {
  Collector collector(root);
  for (const NamingKey& key : kNamingKeys) collector.AddNames(key);
  for (const char* split : {"config.DATA.TRAIN.TRANSFORMS", "config.DATA.TEST.TRANSFORMS"}) {
    collector.AddEntries("transform", root.FindPath(split), split, "transforms");
  }
  if (const ConfigNode* heads = root.FindPath("config.MODEL.HEAD.PARAMS")) {
    for (size_t i = 0; i < heads->items().size(); ++i) {
      collector.AddHeads(heads->items()[i], absl::StrCat("config.MODEL.HEAD.PARAMS.", i));
    }
  }
  const std::string schedules = "config.OPTIMIZER.param_schedulers";
  for (const auto& [name, schedule] : root.Section(schedules).entries()) {
    collector.AddEntry("schedule", schedule, JoinPath(schedules, name), "schedulers");
  }
  return collector.Take();
}

std::vector<std::string> EngineNames(const ConfigNode& root) {
  std::vector<std::string> names;
  for (const NamedComponent& component : NamedComponents(root)) {
    if (component.kind == kEngine) names.push_back(component.name);
  }
  return names;
}

std::string MissingEngine(const ConfigNode& root) {
  const ConfigNode* name = root.Find(kEngineKey);
  if (name == nullptr || !EngineNames(root).empty()) return "";
  return absl::StrCat(name->location().ToString(), ": ", kEngineKey,
                      " names no engine, expected one, such as train, or a list; ssl_main --list=engines prints them");
}

bool Trains(const ConfigNode& root) {
  const std::vector<std::string> engines = EngineNames(root);
  return std::find(engines.begin(), engines.end(), kTrainEngine) != engines.end();
}

bool MeansToTrain(const ConfigNode& root) {
  const std::vector<std::string> engines = EngineNames(root);
  return Trains(root) || std::find(engines.begin(), engines.end(), kEstimateEngine) != engines.end();
}

std::vector<std::string> RegisteredNames(absl::string_view kind, const Registries& registries) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> tables = {
      {registries.batch_sources.kind(), registries.batch_sources.Names()},
      {registries.datasets.kind(), registries.datasets.Names()},
      {"label source", registries.datasets.Names()},
      {registries.engines.kind(), registries.engines.Names()},
      {registries.heads.kind(), registries.heads.Names()},
      {registries.meters.kind(), registries.meters.Names()},
      {registries.methods.kind(), registries.methods.Names()},
      {registries.models.kind(), registries.models.Names()},
      {registries.optimizers.kind(), registries.optimizers.Names()},
      {registries.parameter_groupers.kind(), registries.parameter_groupers.Names()},
      {registries.schedules.kind(), registries.schedules.Names()},
      {registries.train_steps.kind(), registries.train_steps.Names()},
      {registries.transforms.kind(), registries.transforms.Names()},
      {registries.trunks.kind(), registries.trunks.Names()},
  };
  for (const auto& [name, entries] : tables) {
    if (name == kind) return entries;
  }
  return {};
}

std::string WrongName(const NamedComponent& component, const Registries& registries) {
  if (IsVisslName(component.kind, component.name)) return "";
  const std::vector<std::string> registered = RegisteredNames(component.kind, registries);
  const std::set<std::string> names(registered.begin(), registered.end());
  if (names.count(component.name) > 0) return "";
  // What only VISSL has may have been meant, where no more than letters differ, but is not offered.
  std::vector<std::string> known = registered;
  const std::vector<std::string>& vissl = VisslNames(component.kind);
  known.insert(known.end(), vissl.begin(), vissl.end());
  std::string meant = NearestName(component.name, known, /*greatest_distance=*/component.name.size());
  if (meant.empty()) meant = NearestName(component.name, registered);
  return absl::StrCat(component.location.ToString(), ": ", component.path, " is '", component.name, "', which is no ",
                      component.kind, meant.empty() ? "" : absl::StrCat("; did you mean '", meant, "'?"),
                      "; known: ", absl::StrJoin(names, ", "));
}

}  // namespace ssl
