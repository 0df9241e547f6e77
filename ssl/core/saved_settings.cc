// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/saved_settings.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/config/help.h"
#include "ssl/core/precision.h"
#include "ssl/io/json_tree.h"

namespace ssl {
namespace {

std::string ValueOf(const std::string& key, const ConfigNode& defaults, const SavedSettings& settings) {
  const auto value = settings.find(key);
  if (value != settings.end()) return value->second;
  const ConfigNode* by_default = defaults.FindPath(key);
  return by_default == nullptr ? "" : FormatValue(*by_default);
}

}  // namespace

absl::StatusOr<SavedSettings> ParseSavedSettings(absl::string_view json, bool with_counts, absl::string_view origin) {
  const auto wrong = [origin](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("file ", origin, ": ", what));
  };
  const absl::StatusOr<JsonTree> root = ParseJson(json);
  if (!root.ok()) return wrong(root.status().message());
  const JsonTree* version = root->Find("format_version");
  if (version == nullptr || version->kind != JsonTree::Kind::kCount || version->count != kSettingsFormatVersion) {
    return wrong(
        absl::StrCat("format_version is not ", kSettingsFormatVersion, ": another version of the program wrote it"));
  }
  SavedSettings settings;
  for (const char* part : {"settings", "counts"}) {
    const JsonTree* values = root->Find(part);
    if (values == nullptr || values->kind != JsonTree::Kind::kObject) {
      return wrong(absl::StrCat(part, " is not an object"));
    }
    if (!with_counts && absl::string_view(part) == "counts") continue;
    for (const auto& [key, value] : values->object) {
      const bool is_text = value.kind == JsonTree::Kind::kString;
      if (!is_text && value.kind != JsonTree::Kind::kCount) return wrong(absl::StrCat(key, " is no text or number"));
      settings[key] = is_text ? value.text : absl::StrCat(value.count);
    }
  }
  return settings;
}

bool UsesAmpDtype(const ConfigNode& defaults, const SavedSettings& settings) {
  const bool is_float32 = ValueOf("MODEL.AMP_PARAMS.AMP_TYPE", defaults, settings) == "apex" &&
                          ValueOf("MODEL.AMP_PARAMS.AMP_ARGS.opt_level", defaults, settings) == "O0";
  return ValueOf("MODEL.AMP_PARAMS.USE_AMP", defaults, settings) == "true" && !is_float32;
}

void SettleAmpDtype(const ConfigNode& defaults, SavedSettings* settings) {
  if (!UsesAmpDtype(defaults, *settings)) return;
  if (ValueOf(kAmpDtype, defaults, *settings) != FormatValue(ConfigNode::FromString(""))) return;
  (*settings)[kAmpDtype] = DefaultAmpDtype(ValueOf("MACHINE.DEVICE", defaults, *settings));
}

std::string AmpDtypeHint(absl::string_view key, const ConfigNode& now, absl::string_view saved) {
  if (key != kAmpDtype || !now.text().empty()) return "";
  return absl::StrCat("; empty, it is what config.MACHINE.DEVICE makes it: set config.", kAmpDtype, "=", saved,
                      " to go on in the same format");
}

}  // namespace ssl
