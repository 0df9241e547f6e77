// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/meters_resolver.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr absl::string_view kFeatureSettings = "MODEL.FEATURE_EVAL_SETTINGS";
constexpr absl::string_view kListMeters[] = {"accuracy_list_meter", "mean_ap_list_meter", "precision_at_k_list_meter",
                                             "recall_at_k_list_meter"};

absl::StatusOr<bool> Flag(const ConfigNode& config, absl::string_view path) {
  const ConfigNode* node = config.FindPath(path);
  if (node == nullptr || node->is_null()) return false;
  return node->AsBool();
}

absl::StatusOr<bool> ExtractsFeatures(const ConfigNode& config) {
  const ConfigNode& settings = config.Section(kFeatureSettings);
  SSL_ASSIGN_OR_RETURN(const bool eval_mode, Flag(settings, "EVAL_MODE_ON"));
  SSL_ASSIGN_OR_RETURN(const bool trunk, Flag(settings, "FREEZE_TRUNK_ONLY"));
  SSL_ASSIGN_OR_RETURN(const bool trunk_and_head, Flag(settings, "FREEZE_TRUNK_AND_HEAD"));
  const ConfigNode* map = settings.Find("LINEAR_EVAL_FEAT_POOL_OPS_MAP");
  return eval_mode && (trunk || trunk_and_head) && map != nullptr && !map->items().empty();
}

void AddDeprecatedName(ConfigNode* config) {
  const ConfigNode& meters = config->Section("METERS");
  ConfigNode names = ConfigNode::List();
  if (const ConfigNode* given = meters.Find("names")) names.Relocate(given->location());
  const auto add = [&names](const ConfigNode& name) {
    const auto is_same = [&name](const ConfigNode& other) { return other.text() == name.text(); };
    if (std::none_of(names.items().begin(), names.items().end(), is_same)) names.Append(name);
  };
  if (const ConfigNode* given = meters.Find("names")) {
    if (!given->is_list() && !given->is_null()) return;  // whoever reads the key reports it
    for (const ConfigNode& name : given->items()) add(name);
  }
  const ConfigNode* name = meters.Find("name");
  if (name != nullptr && !name->text().empty()) add(*name);
  config->SetPath("METERS.names", std::move(names));
}

void TakeNamesOfFeatures(ConfigNode* config) {
  std::vector<std::string> layers;
  for (const ConfigNode& entry :
       config->FindPath(absl::StrCat(kFeatureSettings, ".LINEAR_EVAL_FEAT_POOL_OPS_MAP"))->items()) {
    layers.push_back(entry.items().empty() ? "" : entry.items()[0].text());
  }
  for (const absl::string_view meter : kListMeters) {
    const std::string section = absl::StrCat("METERS.", meter);
    config->SetPath(absl::StrCat(section, ".num_meters"), ConfigNode::FromInt(static_cast<int64_t>(layers.size())));
    config->SetPath(absl::StrCat(section, ".meter_names"), ConfigNode::FromStrings(layers));
  }
}

absl::Status PrepareForMask(ConfigNode* config) {
  const ConfigNode* sources = config->FindPath("DATA.TEST.DATA_SOURCES");
  if (sources == nullptr || sources->is_null() || (sources->is_list() && sources->items().empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        config->FindPath("METERS.model_output_mask")->location().ToString(),
        ": config.METERS.model_output_mask is true, but config.DATA.TEST.DATA_SOURCES is empty; expected a source"));
  }
  config->SetPath("HOOKS.CHECK_NAN", ConfigNode::FromBool(false));
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveMeters(ConfigNode* config) {
  AddDeprecatedName(config);
  SSL_ASSIGN_OR_RETURN(const bool extracts_features, ExtractsFeatures(*config));
  if (extracts_features) TakeNamesOfFeatures(config);

  SSL_ASSIGN_OR_RETURN(const bool masks, Flag(*config, "METERS.model_output_mask"));
  if (masks) SSL_RETURN_IF_ERROR(PrepareForMask(config));
  SSL_ASSIGN_OR_RETURN(const bool ema_meters, Flag(*config, "HOOKS.EMA_MODEL.ENABLE_EMA_METERS"));
  if (ema_meters && config->FindPath("METERS.names")->items().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        config->FindPath("HOOKS.EMA_MODEL.ENABLE_EMA_METERS")->location().ToString(),
        ": config.HOOKS.EMA_MODEL.ENABLE_EMA_METERS is true, but config.METERS.names is empty; expected a meter"));
  }
  return absl::OkStatus();
}

}  // namespace ssl
