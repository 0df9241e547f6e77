// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/check_config.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
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
#include "ssl/config/merge.h"
#include "ssl/tools/dry_build.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/named_components.h"
#include "ssl/tools/setting_checks.h"
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
    {"MACHINE.DEVICE", "device"},
    {"MODEL.TRUNK.REGNET.activation", "RegNet activation"},
    {"MODEL.TRUNK.REGNET.block_type", "RegNet block"},
    {"MODEL.TRUNK.RESNETS.NORM", "normalisation"},
    {"TRAINER.TASK_NAME", "task"},
};

constexpr char kNoPlace[] = "(built in)";

// "file:line" of "file:line: what is wrong"; the whole of a line without a place.
absl::string_view PlaceOf(absl::string_view line) { return line.substr(0, line.find(": ")); }

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

// The list of heads with the names of those without "_fsdp", which compute the same.
ConfigNode WithUnshardedHeads(const ConfigNode& list) {
  ConfigNode copy = ConfigNode::List(list.location());
  for (size_t i = 0; i < list.items().size(); ++i) {
    const ConfigNode& item = list.items()[i];
    if (item.is_list()) {
      copy.Append(WithUnshardedHeads(item));
    } else {
      const absl::string_view name = absl::StripSuffix(item.text(), "_fsdp");
      const bool is_name = i == 0 && item.is_scalar();
      copy.Append(is_name ? ConfigNode::Scalar(std::string(name), item.quoted(), item.location()) : item);
    }
  }
  return copy;
}

bool Trains(const ConfigNode& root) {
  const std::vector<NamedComponent> components = NamedComponents(root);
  return std::any_of(components.begin(), components.end(), [](const NamedComponent& component) {
    return component.kind == "engine" && component.name == "train";
  });
}

class Checker {
 public:
  explicit Checker(const Registries& registries) : registries_(registries) {}

  ConfigReport Run(ComposeRequest request) {
    request.strict_files = false;
    absl::StatusOr<ComposedConfig> composed = Compose(request);
    if (composed.ok()) {
      report_.warnings = composed->warnings;
      request.strict_files = true;
      AddStatus(Compose(request).status());
      CheckTree(std::move(composed->root));
    } else {
      AddStatus(composed.status());
    }
    return std::move(report_);
  }

 private:
  void CheckTree(ConfigNode root) {
    EndStage();
    AddStatus(CheckVisslVersion(root));
    ConfigNode* config = root.FindMutable("config");
    if (config == nullptr || !config->is_map()) return;
    AddStatus(registries_.options.Check(WithoutMissingValues(*config)));
    CheckNames(root);
    CheckUnsupported(*config);
    FindFragment(root);
    if (report_.is_fragment) return;

    EndStage();
    Resolve(config);
    EndStage();
    for (const std::string& problem : ContradictingSettings(*config)) AddMistake(problem);
    if (report_.mistakes.empty()) CheckDataSets(*config);
    if (!report_.mistakes.empty() || !report_.missing_components.empty()) return;
    for (const absl::Status& status : DryBuild(root, registries_)) AddStatus(status);
  }

  // Reports values that VISSL has and the struct refuses, and gives those keys their defaults.
  ConfigNode WithoutMissingValues(ConfigNode config) {
    const ConfigNode defaults = registries_.options.Defaults();
    for (const auto& [path, kind] : kClosedKeys) {
      const ConfigNode* node = config.FindPath(path);
      const ConfigNode* by_default = defaults.FindPath(path);
      if (node == nullptr || by_default == nullptr || !IsVisslName(kind, node->text())) continue;
      ConfigNode alone = ConfigNode::Map();
      alone.SetPath(path, *node);
      if (registries_.options.Check(alone).ok()) continue;
      AddMissing(node->location(), kind, node->text(), absl::StrCat("config.", path));
      config.SetPath(path, *by_default);
    }
    return config;
  }

  void CheckNames(const ConfigNode& root) {
    for (const NamedComponent& component : NamedComponents(root)) {
      const std::string mistake = WrongName(component, registries_);
      const std::vector<std::string> known = RegisteredNames(component.kind, registries_);
      if (!mistake.empty()) {
        AddMistake(mistake);
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

  // All resolvers, whatever the ones before find.
  void Resolve(ConfigNode* config) {
    ConfigNode resolved = registries_.options.Defaults();
    MergeInto(&resolved, *config);
    if (const ConfigNode* heads = resolved.FindPath("MODEL.HEAD.PARAMS")) {
      resolved.SetPath("MODEL.HEAD.PARAMS", WithUnshardedHeads(*heads));
    }
    for (const Resolver& resolve : registries_.resolvers) AddStatus(resolve(&resolved));
    AddStatus(registries_.options.Check(resolved));
    *config = std::move(resolved);
  }

  // Data sets of which only the name is given have to be known.
  void CheckDataSets(const ConfigNode& config) {
    std::vector<std::string> known;
    for (const auto& entry : registries_.dataset_folders) known.push_back(entry.first);
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
          AddMissing(name.location(), "data set", name.text(), absl::StrCat(path, "; DATA_PATHS is empty"));
        } else {
          AddMistake(absl::StrCat(name.location().ToString(), ": ", path, " is '", name.text(), "' and DATA_PATHS is ",
                                  "empty; did you mean '", nearest, "'?"));
        }
      }
    }
  }

  void AddMissing(const SourceLocation& location, absl::string_view kind, absl::string_view name,
                  absl::string_view path) {
    report_.missing_components.push_back(absl::StrCat(location.ToString(), ": ", kind, " '", name, "' (", path, ")"));
  }

  // What a later stage finds at a place where an earlier one found something follows from that.
  void EndStage() {
    for (const std::string& line : report_.mistakes) reported_.emplace(PlaceOf(line));
    for (const std::string& line : report_.missing_components) reported_.emplace(PlaceOf(line));
    reported_.erase(kNoPlace);
  }

  void AddMistake(const std::string& line) {
    const bool is_new = std::find(report_.mistakes.begin(), report_.mistakes.end(), line) == report_.mistakes.end();
    if (is_new && reported_.count(std::string(PlaceOf(line))) == 0) report_.mistakes.push_back(line);
  }

  // A component that says Unimplemented knows what is asked for.
  void AddStatus(const absl::Status& status) {
    if (status.ok()) return;
    for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      if (absl::IsUnimplemented(status)) {
        report_.missing_components.emplace_back(line);
      } else {
        AddMistake(std::string(line));
      }
    }
  }

  const Registries& registries_;
  ConfigReport report_;
  std::set<std::string> reported_;
};

void AppendLines(absl::string_view title, const std::vector<std::string>& lines, std::string* text) {
  if (lines.empty()) return;
  absl::StrAppend(text, title, "\n  ", absl::StrJoin(lines, "\n  "), "\n");
}

std::string Verdict(const ConfigReport& report) {
  if (!report.mistakes.empty()) {
    const size_t count = report.mistakes.size();
    return absl::StrCat(count, count == 1 ? " mistake" : " mistakes");
  }
  if (report.is_fragment) return absl::StrCat("right as a part of a configuration: ", report.fragment_reason);
  return report.missing_components.empty() ? "would run here" : "right, but cannot run here";
}

}  // namespace

ConfigReport CheckConfig(const ComposeRequest& request, const Registries& registries) {
  return Checker(registries).Run(request);
}

std::string FormatReport(const ConfigReport& report) {
  std::string text;
  std::vector<std::string> warnings;
  const auto is_mistake = [&](const std::string& line) {
    return std::find(report.mistakes.begin(), report.mistakes.end(), line) != report.mistakes.end();
  };
  std::remove_copy_if(report.warnings.begin(), report.warnings.end(), std::back_inserter(warnings), is_mistake);
  AppendLines("mistakes:", report.mistakes, &text);
  AppendLines("not available here:", report.missing_components, &text);
  AppendLines("warnings:", warnings, &text);
  absl::StrAppend(&text, Verdict(report), "\n");
  return text;
}

int ExitCodeOf(const ConfigReport& report) {
  if (!report.mistakes.empty()) return kExitConfiguration;
  return report.is_fragment || !report.missing_components.empty() ? kExitIncomplete : kExitFinished;
}

}  // namespace ssl
