// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/settings_without_effect.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/check/named_components.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/config/same_value.h"

namespace ssl {
namespace {

using Names = std::vector<std::string>;

// A section, or a key, that counts with certain values of another key only.
struct Condition {
  const char* path;
  const char* key;
  Names values;
};

const std::vector<Condition>& Conditions() {
  static const auto* const conditions = new std::vector<Condition>{
      {"DATA.TRAIN.POWER_LAW_SAMPLER", "DATA.TRAIN.POWER_LAW_SAMPLER.ENABLED", {"true"}},
      {"DATA.TRAIN.STRATIFIED_SAMPLER", "DATA.TRAIN.STRATIFIED_SAMPLER.ENABLED", {"true"}},
      {"MODEL.ACTIVATION_CHECKPOINTING", "MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING", {"true"}},
      {"MODEL.AMP_PARAMS", "MODEL.AMP_PARAMS.USE_AMP", {"true"}},
      {"MODEL.SYNC_BN_CONFIG", "MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN", {"true"}},
      {"MODEL.TRUNK.REGNET", "MODEL.TRUNK.NAME", {"regnet"}},
      {"MODEL.TRUNK.RESNETS", "MODEL.TRUNK.NAME", {"resnet"}},
      {"MODEL.TRUNK.VISION_TRANSFORMERS", "MODEL.TRUNK.NAME", {"vision_transformer"}},
      {"MODEL.TRUNK.XCIT", "MODEL.TRUNK.NAME", {"xcit"}},
      {"OPTIMIZER.head_optimizer_params.weight_decay", "OPTIMIZER.head_optimizer_params.use_different_wd", {"true"}},
      {"OPTIMIZER.larc_config", "OPTIMIZER.use_larc", {"true"}},
      {"OPTIMIZER.layer_wise_lr_decay", "OPTIMIZER.param_group_constructor", {"lr_decay"}},
      {"OPTIMIZER.linear_eval_heads", "OPTIMIZER.param_group_constructor", {"linear_eval_heads"}},
      {"OPTIMIZER.param_schedulers.lr.auto_lr_scaling",
       "OPTIMIZER.param_schedulers.lr.auto_lr_scaling.auto_scale",
       {"true"}},
      {"OPTIMIZER.param_schedulers.lr_head", "OPTIMIZER.head_optimizer_params.use_different_lr", {"true"}},
  };
  return *conditions;
}

// The section of a loss or a meter that an engine reads, whatever the configuration chooses.
struct EngineSection {
  const char* engine;
  const char* path;
};

constexpr EngineSection kReadByEngines[] = {
    {"extract_label_predictions", "METERS.accuracy_list_meter"},
    {"full_tune", "LOSS.cross_entropy_multiple_output_single_target"},
};

// Another program's trunk or optimizer may read what ours does not.
bool IsOurs(const ConfigNode& value, const Names& known) {
  const absl::string_view name = absl::StripSuffix(value.text(), "_fsdp");
  return value.AsBool().ok() || std::find(known.begin(), known.end(), name) != known.end();
}

bool Holds(const ConfigNode& value, const Names& values) {
  const absl::StatusOr<bool> flag = value.AsBool();
  const std::string text = flag.ok() ? (*flag ? "true" : "false") : value.text();
  const bool is_sharded = absl::EndsWith(text, "_fsdp");  // the same part, shared by ranks
  if (is_sharded && std::count(values.begin(), values.end(), absl::StripSuffix(text, "_fsdp")) > 0) return true;
  return std::find(values.begin(), values.end(), text) != values.end();
}

std::string Says(const ConfigNode& config, absl::string_view key) {
  const ConfigNode& value = *config.FindPath(key);
  const std::string place = value.location().file.empty() ? "" : absl::StrCat(" (", value.location().ToString(), ")");
  return absl::StrCat("config.", key, " is ", value.Describe(), place);
}

// The names that the documentation of a key begins with, of all its parts: "linear, cosine: first value; inverse_sqrt:
// value at the warm-up's end". Empty where it begins otherwise.
Names ReadersOf(absl::string_view doc, const Names& known) {
  Names readers;
  for (const absl::string_view part : absl::StrSplit(doc, "; ")) {
    const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits(": ", 1));
    for (const absl::string_view name : absl::StrSplit(sides.first, ", ")) {
      if (std::find(known.begin(), known.end(), name) == known.end()) return {};
      readers.emplace_back(name);
    }
  }
  return readers;
}

// The keys of a component that is off, and the key that turns it on.
class KeysOf : public FieldVisitor {
 public:
  KeysOf(ComponentOptions* options, std::string section) : options_(options), section_(std::move(section)) {
    options->VisitFields(*this);
  }

  std::string switch_key;
  std::set<std::string> keys;

  void Field(absl::string_view name, bool* value, const Doc& /*doc*/) override {
    Take(name);
    if (*value || !switch_key.empty()) return;
    *value = true;
    if (options_->enabled()) switch_key = JoinPath(section_, name);
    *value = false;
  }
  void Field(absl::string_view name, int64_t*, const Doc&) override { Take(name); }
  void Field(absl::string_view name, double*, const Doc&) override { Take(name); }
  void Field(absl::string_view name, std::string*, const Doc&) override { Take(name); }
  void Field(absl::string_view name, std::vector<int64_t>*, const Doc&) override { Take(name); }
  void Field(absl::string_view name, std::vector<double>*, const Doc&) override { Take(name); }
  void Field(absl::string_view name, std::vector<std::string>*, const Doc&) override { Take(name); }
  void Field(absl::string_view name, ConfigNode*, const Doc&) override { Take(name); }
  void Section(absl::string_view name, Options*, const Doc&) override { Take(name); }

 private:
  void Take(absl::string_view name) { keys.insert(JoinPath(section_, name)); }

  ComponentOptions* const options_;
  const std::string section_;
};

class Finder {
 public:
  Finder(const ConfigNode& root, const Registries& registries)
      : config_(*root.Find("config")), registries_(registries), defaults_(registries.options.Defaults()) {
    const Names engines = EngineNames(root);
    for (const auto& [engine, path] : kReadByEngines) {
      if (std::find(engines.begin(), engines.end(), engine) != engines.end()) read_.insert(path);
    }
  }

  std::vector<std::string> Take() { return std::move(found_); }

  void FindUnchosen() {
    const ConfigNode* loss = config_.FindPath("LOSS.name");
    if (loss == nullptr) return;
    for (const auto& [name, section] : config_.Section("LOSS").entries()) {
      if (section.is_map() && name != loss->text()) Report(JoinPath("LOSS", name), Says(config_, "LOSS.name"));
    }
    const ConfigNode* meters = config_.FindPath("METERS.names");
    for (const std::string& name : registries_.meters.Names()) {
      const auto is_it = [&](const ConfigNode& chosen) { return chosen.text() == name; };
      const ConfigNode* one = config_.FindPath("METERS.name");
      if (meters == nullptr || std::any_of(meters->items().begin(), meters->items().end(), is_it)) continue;
      if (one != nullptr && is_it(*one)) continue;
      Report(JoinPath("METERS", name), absl::StrCat("config.METERS.names has no ", name), "METERS.names");
    }
  }

  void FindSwitchedOff() {
    for (const Condition& condition : Conditions()) {
      Names known;
      for (const Condition& other : Conditions()) {
        if (absl::string_view(other.key) == condition.key) {
          known.insert(known.end(), other.values.begin(), other.values.end());
        }
      }
      if (absl::string_view(condition.key) == "OPTIMIZER.param_group_constructor") {
        known = registries_.parameter_groupers.Names();
      }
      ReportUnless(condition.path, condition.key, condition.values, known);
    }
  }

  // Keys of the optimizer and of schedules, by their documentation.
  void FindUnread() {
    const Names optimizers = registries_.optimizers.Names();
    const Names schedules = registries_.schedules.Names();
    for (const CatalogEntry& entry : registries_.options.Entries()) {
      if (!absl::StartsWith(entry.path, "OPTIMIZER.")) continue;
      const std::string section = entry.path.substr(0, entry.path.rfind('.'));
      const bool is_schedule = absl::StartsWith(section, "OPTIMIZER.param_schedulers.");
      const Names& known = is_schedule ? schedules : optimizers;
      const std::string key = JoinPath(is_schedule ? section : "OPTIMIZER", "name");
      const Names readers = ReadersOf(entry.doc, known);
      if (!readers.empty()) ReportUnless(entry.path, key, readers, known);
    }
  }

  void FindComponentsThatAreOff() {
    const ConfigNode* entries = config_.Find("hooks");
    if (entries != nullptr && !entries->items().empty()) return;  // which may turn on any
    std::set<std::string> used;
    std::vector<std::pair<KeysOf, std::string>> off;
    for (const auto* components : {&registries_.hook_components, &registries_.sink_components}) {
      for (const auto& [name, component] : *components) {
        const std::unique_ptr<ComponentOptions> options = component.make_options();
        Read(options->section(), options.get());
        for (const SharedOptions& shared : options->shared()) Read(shared.section, shared.options);
        const bool is_on = options->enabled();
        KeysOf keys(options.get(), std::string(options->section()));
        if (is_on) used.insert(keys.keys.begin(), keys.keys.end());
        if (!is_on) off.emplace_back(std::move(keys), name);
      }
    }
    for (const auto& [keys, name] : off) {
      const std::string reason =
          keys.switch_key.empty() ? absl::StrCat(name, " is not turned on") : Says(config_, keys.switch_key);
      for (const std::string& key : keys.keys) {
        if (used.count(key) == 0) Report(key, reason, keys.switch_key);
      }
    }
  }

 private:
  void Read(absl::string_view section, Options* options) {
    ReadProblems(config_.Section(section), "", UnknownKeys::kIgnore, options);
  }

  void ReportUnless(const std::string& path, const std::string& key, const Names& values, const Names& known) {
    const ConfigNode* value = config_.FindPath(key);
    if (value == nullptr || Holds(*value, values) || !IsOurs(*value, known)) return;
    Report(path, Says(config_, key), key);
  }

  // Whoever has written a switch, or a list of names, beside what it leaves out keeps that for another day, as VISSL's
  // files do, and the resolved configuration of a run.
  bool IsKept(const ConfigNode& node, absl::string_view switch_key) const {
    constexpr absl::string_view kCommandLine = "command line";
    const ConfigNode* value = switch_key.empty() ? nullptr : config_.FindPath(switch_key);
    return value != nullptr && (value->AsBool().ok() || value->is_list()) &&
           value->location().file == node.location().file && node.location().file != kCommandLine;
  }

  // What stands at or below `path`, but for the key that decides.
  void Report(const std::string& path, const std::string& reason, absl::string_view decider = "") {
    const ConfigNode* node = config_.FindPath(path);
    const ConfigNode* by_default = defaults_.FindPath(path);
    if (node == nullptr || by_default == nullptr || path == decider || read_.count(path) > 0) return;
    if (node->is_map() && !by_default->entries().empty()) {
      for (const auto& [key, value] : node->entries()) Report(JoinPath(path, key), reason, decider);
      return;
    }
    if (node->location().file.empty() || SameValue(*by_default, *node) || IsKept(*node, decider)) return;
    const std::string line = absl::StrCat(node->location().ToString(), ": config.", path, " is ", node->Describe(),
                                          ", which has no effect: ", reason);
    if (seen_.insert(path).second) found_.push_back(line);
  }

  const ConfigNode& config_;
  const Registries& registries_;
  const ConfigNode defaults_;
  std::set<std::string> read_;  // sections, by engines
  std::set<std::string> seen_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> SettingsWithoutEffect(const ConfigNode& root, const Registries& registries) {
  Finder finder(root, registries);
  finder.FindUnchosen();
  finder.FindSwitchedOff();
  finder.FindUnread();
  finder.FindComponentsThatAreOff();
  return finder.Take();
}

}  // namespace ssl
