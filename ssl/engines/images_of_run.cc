// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/images_of_run.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/core/saved_settings.h"
#include "ssl/engines/checkpoint_settings.h"
#include "ssl/engines/left_at_default.h"

namespace ssl {
namespace {

constexpr char kCommandLine[] = "command line";  // the "file" of what is typed (ssl/config/node.h)

// Or a part of it.
bool IsTyped(const ConfigNode& value) {
  return value.location().file == kCommandLine ||
         std::any_of(value.items().begin(), value.items().end(),
                     [](const ConfigNode& item) { return IsTyped(item); }) ||
         std::any_of(value.entries().begin(), value.entries().end(),
                     [](const ConfigNode::Entry& entry) { return IsTyped(entry.second); });
}

bool IsSetByHand(const ConfigNode& value, const ConfigNode* by_default) {
  return IsTyped(value) || (value.location().file.empty() && !IsLeftAtDefault(&value, by_default));
}

}  // namespace

std::vector<std::string> TakeImagesOfRun(const RecordedRun& run, const ConfigNode& defaults, ConfigNode* config) {
  std::vector<std::string> choices;
  std::vector<const char*> keys = {"TRANSFORMS"};
  keys.insert(keys.end(), std::begin(kReadingKeys), std::end(kReadingKeys));
  for (const char* key : keys) {
    const std::string path = absl::StrCat("DATA.TRAIN.", key);
    const ConfigNode* now = config->FindPath(path);
    const auto saved = run.settings.find(path);
    if (now == nullptr || saved == run.settings.end() || IsSetByHand(*now, defaults.FindPath(path))) continue;
    if (SettingText(*now) == saved->second || IsSavedAsWritten(*now, saved->second)) continue;
    absl::StatusOr<ConfigNode> of_run = ReadSavedSetting(saved->second, run.origin);
    if (!of_run.ok()) continue;
    choices.push_back(absl::StrCat("config.", path, " is what the run was trained with (", run.origin,
                                   "), not what stands in ", now->location().ToString()));
    config->SetPath(path, *std::move(of_run));
  }
  return choices;
}

std::string OtherImagesOfRun(const RecordedRun& run, const ConfigNode& config) {
  constexpr char kPaths[] = "DATA.TRAIN.DATA_PATHS";
  const ConfigNode* now = config.FindPath(kPaths);
  const std::string places = PlacesForMessage(run.settings, kPaths);
  if (now == nullptr || places == "[]" || NamesSamePlaces(run.settings, kPaths, *now)) return "";
  const auto count = run.settings.find("DATA.TRAIN.num_samples");
  const std::string images = count == run.settings.end() ? ""
                             : count->second == "1"      ? " (1 image)"
                                                         : absl::StrCat(" (", count->second, " images)");
  return absl::StrCat("the network was trained on the images of ", places, images);
}

}  // namespace ssl
