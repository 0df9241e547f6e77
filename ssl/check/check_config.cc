// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/check_config.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/check/dry_build.h"
#include "ssl/check/message_places.h"
#include "ssl/check/named_components.h"
#include "ssl/check/setting_checks.h"
#include "ssl/check/settings_without_effect.h"
#include "ssl/check/tokens_for_here.h"
#include "ssl/config/merge.h"
#include "ssl/config/problem.h"
#include "ssl/optim/zero_resolver.h"
#include "ssl/vissl/vissl_keys.h"
#include "ssl/vissl/vissl_names.h"

namespace ssl {
namespace {

// Keys whose struct accepts some of the values that VISSL has; `kind` as for VisslNames.
struct ClosedKey {
  const char* path;
  const char* kind;
};

constexpr ClosedKey kClosedKeys[] = {
    {"DATA.TEST.COLLATE_FUNCTION", "collator"},
    {"DATA.TRAIN.COLLATE_FUNCTION", "collator"},
    {"DATA.TEST.TARGET_KEY_NAMES", "target"},
    {"DATA.TRAIN.TARGET_KEY_NAMES", "target"},
    {"MACHINE.DEVICE", "device"},
    {"MODEL.TRUNK.REGNET.activation", "RegNet activation"},
    {"MODEL.TRUNK.REGNET.block_type", "RegNet block"},
    {"MODEL.TRUNK.RESNETS.NORM", "normalisation"},
    {"TRAINER.TASK_NAME", "task"},
};

constexpr char kNoPlace[] = "built in";
constexpr char kDataSet[] = "data set";

// "file:line" of "file:line: what is wrong"; the whole of a line without a place.
absl::string_view PlaceOf(absl::string_view line) { return line.substr(0, line.find(": ")); }

// The last part of the first key of a line, such as "num_epochs"; "" when that would be in many lines.
std::string KeyOf(absl::string_view line) {
  constexpr size_t kShortest = 5;  // "name" says nothing
  const size_t begin = line.find("config.", PlaceOf(line).size());
  if (begin == absl::string_view::npos) return "";
  absl::string_view key = line.substr(begin);
  key = key.substr(0, key.find_first_of(" ':,;)"));
  key = key.substr(key.rfind('.') + 1);
  return key.size() < kShortest ? "" : std::string(key);
}

bool IsSet(const ConfigNode& config, absl::string_view path) {
  const ConfigNode* node = config.FindPath(path);
  return node != nullptr && !node->location().file.empty();
}

// Sections of a component that is not named, or that is missing and reported by its name, do not matter.
bool Matters(const UnsupportedKey& key, const ConfigNode& config) {
  const std::vector<std::string> parts = absl::StrSplit(key.path, '.');
  if (absl::StartsWith(key.path, "MODEL.TRUNK.")) return false;
  if (parts[0] != "LOSS" || parts.size() < 3) return true;
  const ConfigNode* name = config.FindPath("LOSS.name");
  return name != nullptr && name->text() == parts[1];
}

// The longest beginning of `path` (from "config" on) that names a value of the defaults; "" for none.
std::string ValuePath(absl::string_view path, const ConfigNode& defaults) {
  absl::ConsumePrefix(&path, "config.");
  while (!path.empty() && defaults.FindPath(path) == nullptr) {
    const size_t dot = path.rfind('.');
    path = dot == absl::string_view::npos ? "" : path.substr(0, dot);
  }
  return std::string(path);
}

ConfigNode ListOf(const ConfigNode& item) {
  ConfigNode list = ConfigNode::List();
  list.Append(item);
  return list;
}

class Checker {
 public:
  Checker(const Registries& registries, const WorldPlacement& place_world)
      : registries_(registries), place_world_(place_world) {}

  ConfigReport Run(ComposeRequest request) {
    request.lists_all_unknown_keys = true;
    std::vector<std::string> problems;
    ComposedConfig composed = ComposeWithProblems(request, &problems);
    report_.warnings = std::move(composed.warnings);
    for (const std::string& problem : problems) AddMistake(problem);
    CheckTree(std::move(composed.root));
    return std::move(report_);
  }

 private:
  void CheckTree(ConfigNode root) {
    EndStage();
    AddStatus(CheckVisslVersion(root));
    ConfigNode* config = root.FindMutable("config");
    if (config == nullptr || !config->is_map()) return;
    const ConfigNode readable = WithoutMissingValues(*config);
    const std::vector<ConfigProblem> wrong_values = registries_.options.Problems(readable);
    for (const ConfigProblem& problem : wrong_values) AddMistake(problem.ToString());
    AddStatus(ResolveZero(config));  // before its name, which is that of no optimizer
    CheckNames(&root);
    CheckUnsupported(*config);
    FindFragment(root);
    if (report_.is_fragment) return;

    UseDefaults(wrong_values, config);
    EndStage();
    if (MeansToTrain(root)) {
      for (std::string& line : SettingsWithoutEffect(root, registries_)) report_.warnings.push_back(std::move(line));
    }
    PlaceWorld(&root);
    Resolve(&root);
    report_.config = *config;
    EndStage();
    for (const std::string& problem : ContradictingSettings(*config, MeansToTrain(root))) AddMistake(problem);
    CheckDataSets(*config);
    const bool can_be_built = report_.missing_components.empty() && names_are_known_;
    CheckDevice(root);
    if (!can_be_built) return;
    EndStage();
    for (const absl::Status& status : DryBuild(root, registries_)) {
      const bool stands_nowhere = PlaceOf(status.message()) == kNoPlace;  // and follows from what was found
      if (!stands_nowhere || places_.empty()) AddStatus(WithPlaces(status, root));
    }
  }

  // Puts the default in the place of each wrong value, where what follows from it is found, too.
  void UseDefaults(const std::vector<ConfigProblem>& wrong_values, ConfigNode* config) {
    const ConfigNode defaults = registries_.options.Defaults();
    for (const ConfigProblem& problem : wrong_values) {
      const std::string path = ValuePath(problem.path, defaults);
      if (path.empty()) continue;
      ConfigNode value = *defaults.FindPath(path);
      value.Relocate(problem.location);
      config->SetPath(path, std::move(value));
    }
  }

  // Reports values that VISSL has and the struct refuses, and gives those keys their defaults.
  ConfigNode WithoutMissingValues(ConfigNode config) {
    const ConfigNode defaults = registries_.options.Defaults();
    for (const auto& [path, kind] : kClosedKeys) {
      const ConfigNode* node = config.FindPath(path);
      const ConfigNode* by_default = defaults.FindPath(path);
      if (node == nullptr || by_default == nullptr) continue;
      const std::vector<ConfigNode> names = node->is_list() ? node->items() : std::vector<ConfigNode>{*node};
      const auto is_missing = [&, path = path, kind = kind](const ConfigNode& name) {
        ConfigNode alone = ConfigNode::Map();
        alone.SetPath(path, node->is_list() ? ListOf(name) : name);
        return IsVisslName(kind, name.text()) && !registries_.options.Check(alone).ok();
      };
      const auto missing = std::find_if(names.begin(), names.end(), is_missing);
      if (missing == names.end()) continue;
      AddMissing(missing->location(), kind, missing->text(), absl::StrCat("config.", path));
      config.SetPath(path, *by_default);
    }
    return config;
  }

  // A mistyped name is replaced by the nearest one.
  void CheckNames(ConfigNode* root) {
    const std::string missing_engine = MissingEngine(*root);
    if (!missing_engine.empty()) AddMistake(missing_engine);
    for (const NamedComponent& component : NamedComponents(*root)) {
      const std::string mistake = WrongName(component, registries_);
      const std::vector<std::string> known = RegisteredNames(component.kind, registries_);
      if (!mistake.empty()) {
        AddMistake(mistake);
        const std::string nearest = NearestName(component.name, known);
        names_are_known_ &= !nearest.empty();
        root->SetPath(component.path, ConfigNode::Scalar(nearest, /*quoted=*/false, component.location));
      } else if (std::find(known.begin(), known.end(), component.name) == known.end()) {
        AddMissing(component.location, component.kind, component.name, component.path);
      }
    }
  }

  void CheckUnsupported(const ConfigNode& config) {
    for (const UnsupportedKey& key : registries_.options.Unsupported(config)) {
      if (!Matters(key, config)) continue;
      report_.missing_components.push_back(
          absl::StrCat(key.location.ToString(), ": key config.", key.path, " is ", key.value, ": ", key.note));
    }
  }

  void FindFragment(const ConfigNode& root) {
    const ConfigNode& config = *root.Find("config");
    std::vector<std::string> lacks;
    if (!IsSet(config, "MODEL.TRUNK.NAME") && !IsSet(config, "MODEL.HEAD.PARAMS")) lacks.push_back("MODEL.TRUNK.NAME");
    if (!IsSet(config, "DATA.TRAIN.DATA_SOURCES") && !IsSet(config, "DATA.TEST.DATA_SOURCES")) {
      lacks.push_back("DATA.TRAIN.DATA_SOURCES");
    }
    if (Trains(root) && !IsSet(config, "LOSS.name")) lacks.push_back("LOSS.name");
    report_.is_fragment = !lacks.empty();
    if (report_.is_fragment) {
      report_.fragment_reason = absl::StrCat("no file sets config.", absl::StrJoin(lacks, ", config."));
    }
  }

  // What this machine alone has not been told is no mistake; the rest is checked as for all nodes.
  void PlaceWorld(ConfigNode* root) {
    const absl::Status status = place_world_ == nullptr ? absl::OkStatus() : WithPlaces(place_world_(root), *root);
    if (!absl::IsUnimplemented(status)) return AddStatus(status);
    report_.missing_nodes = std::string(status.message());
  }

  // All resolvers, whatever the ones before find.
  void Resolve(ConfigNode* root) {
    ConfigNode resolved = registries_.options.Defaults();
    MergeInto(&resolved, *root->Find("config"));
    for (const Resolver& resolve : registries_.resolvers) AddStatus(WithPlaces(resolve(registries_, &resolved), *root));
    AddStatus(registries_.options.Check(resolved));
    root->Set("config", std::move(resolved));
  }

  // Data sets of which only the name is given have to be known.
  void CheckDataSets(const ConfigNode& config) {
    std::vector<std::string> known;
    for (const auto& entry : registries_.dataset_folders) known.push_back(entry.first);
    // What a catalog knows is found out when the data are opened.
    const ConfigNode* catalog = config.FindPath("DATA.DATASET_CATALOG");
    if (catalog != nullptr && !catalog->text().empty()) return;
    for (const char* split : {"DATA.TRAIN", "DATA.TEST"}) {
      const ConfigNode& data = config.Section(split);
      const ConfigNode* sources = data.Find("DATA_SOURCES");
      const ConfigNode* names = data.Find("DATASET_NAMES");
      const bool has_files = !sources->items().empty() && sources->items()[0].text() != "synthetic";
      if (!has_files || !data.Find("DATA_PATHS")->items().empty()) continue;
      for (const ConfigNode& name : names->items()) {
        if (registries_.dataset_folders.count(name.text()) > 0) continue;
        const std::string path = absl::StrCat("config.", split, ".DATASET_NAMES");
        const std::string nearest = NearestName(name.text(), known);
        if (nearest.empty()) {
          AddMissing(name.location(), kDataSet, name.text(), absl::StrCat(path, "; DATA_PATHS is empty"));
        } else {
          AddMistake(absl::StrCat(name.location().ToString(), ": ", path, " is '", name.text(), "' and DATA_PATHS is ",
                                  "empty; did you mean '", nearest, "'?"));
        }
      }
    }
  }

  // A machine that lacks the device may check the configuration for one that has it.
  void CheckDevice(const ConfigNode& root) {
    const absl::Status status = CheckDeviceIsHere(root, registries_);
    if (!FollowsFromEarlier(std::string(status.message()))) report_.missing_device = std::string(status.message());
  }

  void AddMissing(const SourceLocation& location, absl::string_view kind, absl::string_view name,
                  absl::string_view path) {
    const std::string setting = absl::StrCat(location.ToString(), ": ", path, " ");
    const auto is_of_it = [&setting](const std::string& line) { return absl::StartsWith(line, setting); };
    if (std::any_of(report_.mistakes.begin(), report_.mistakes.end(), is_of_it)) return;  // which says more
    const absl::string_view why = WhyNotHere(kind, name);
    report_.missing_components.push_back(
        absl::StrCat(location.ToString(), ": ", kind, " '", name, "' (", path, ")", why.empty() ? "" : ": ", why));
  }

  // From here on, what follows from the findings so far is left out.
  void EndStage() {
    for (const std::vector<std::string>* lines : {&report_.mistakes, &report_.missing_components}) {
      for (const std::string& line : *lines) {
        places_.emplace(PlaceOf(line));
        keys_.insert(KeyOf(line));
      }
    }
    keys_.erase("");
  }

  // A later finding at the same place, about a key that is wrong, or about values that are right by themselves.
  bool FollowsFromEarlier(const std::string& line) const {
    const absl::string_view place = PlaceOf(line);
    if (places_.count(std::string(place)) > 0 || (place == kNoPlace && !places_.empty())) return true;
    return std::any_of(keys_.begin(), keys_.end(),
                       [&line](const std::string& key) { return absl::StrContains(line, key); });
  }

  void AddMistake(const std::string& line) { AddUnlessThere(line, &report_.mistakes); }

  void AddUnlessThere(std::string line, std::vector<std::string>* lines) {
    const bool is_new = std::find(lines->begin(), lines->end(), line) == lines->end();
    if (is_new && !FollowsFromEarlier(line)) lines->push_back(std::move(line));
  }

  // A component that says Unimplemented knows what is asked for.
  void AddStatus(const absl::Status& status) {
    if (status.ok()) return;
    if (absl::IsDataLoss(status)) return AddUnlessThere(std::string(status.message()), &report_.damaged_data);
    for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      if (!absl::IsUnimplemented(status)) {
        AddMistake(std::string(line));
      } else if (!FollowsFromEarlier(std::string(line))) {
        report_.missing_components.emplace_back(line);
      }
    }
  }

  const Registries& registries_;
  const WorldPlacement& place_world_;
  ConfigReport report_;
  std::set<std::string> places_;  // of the findings of earlier stages
  std::set<std::string> keys_;
  bool names_are_known_ = true;  // as far as there is a nearest one
};

// Whether it lacks nothing but what is elsewhere: the device, the other nodes, the data.
bool IsForAnotherMachine(const ConfigReport& report) {
  const auto is_data = [](const std::string& line) {
    return absl::StrContains(line, absl::StrCat(": ", kDataSet, " '"));
  };
  const std::vector<std::string>& missing = report.missing_components;
  if (report.is_fragment || !std::all_of(missing.begin(), missing.end(), is_data)) return false;
  return !missing.empty() || !report.missing_device.empty() || !report.missing_nodes.empty();
}

}  // namespace

ConfigReport CheckConfig(const ComposeRequest& request, const Registries& registries,
                         const WorldPlacement& place_world) {
  return Checker(registries, place_world).Run(request);
}

std::vector<std::string> FindTokensForHere(const ComposeRequest& request, const Registries& registries,
                                           const WorldPlacement& place_world, const ConfigReport& report) {
  if (!IsForAnotherMachine(report)) return {};
  std::vector<std::string> tokens = TokensForThisMachine(report.config);
  const bool may_have_data = report.missing_components.empty();
  // Only what has been tried is said.
  for (const std::vector<std::string>& more : {std::vector<std::string>(), TokensForSyntheticData(report.config)}) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    if (tokens.empty() || (more.empty() && !may_have_data)) continue;
    ComposeRequest here = request;
    here.tokens.insert(here.tokens.end(), tokens.begin(), tokens.end());
    if (VerdictOf(CheckConfig(here, registries, place_world)) == ConfigVerdict::kRuns) return tokens;
  }
  return {};
}

ComposeRequest MakeRunRequest(const Registries& registries) {
  ComposeRequest request;
  request.defaults = ConfigNode::Map();
  AddVisslRootKeys(&request.defaults);
  request.defaults.Set("engine_name", ConfigNode::FromString("train"));
  request.defaults.Set("config", registries.options.Defaults());
  return request;
}

}  // namespace ssl
