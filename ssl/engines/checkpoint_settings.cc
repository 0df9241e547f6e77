// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/checkpoint_settings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/help.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/saved_settings.h"

namespace ssl {
namespace {

constexpr char kTrainTransforms[] = "DATA.TRAIN.TRANSFORMS";
constexpr char kTestTransforms[] = "DATA.TEST.TRANSFORMS";
constexpr char kParamsFile[] = "MODEL.WEIGHTS_INIT.PARAMS_FILE";

bool IsSaved(const ConfigNode& value, const std::string& saved) {
  return SettingText(value) == saved || IsSavedAsWritten(value, saved);
}

// The transform of that name as text; "none" without one.
std::string Conversion(const ConfigNode& transforms, absl::string_view wanted) {
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* name = transform.Find("name");
    if (name != nullptr && name->text() == wanted) return FormatValue(transform);
  }
  return "none";
}

// Both sides pass through the same text, in which equal numbers are spelled alike.
absl::Status AddConversions(const ConfigNode& config, const RunIdentity& identity, absl::string_view json,
                            absl::string_view origin, std::vector<std::string>* changes) {
  SSL_ASSIGN_OR_RETURN(const std::string text, identity.SavedSetting(kTrainTransforms, json, origin));
  SSL_ASSIGN_OR_RETURN(const std::string now_text, identity.SavedSetting(kTestTransforms, identity.ToJson(), origin));
  // What an older version wrote so that it cannot be read again, such as a text with a comma, is not compared.
  const absl::StatusOr<ConfigNode> saved = ReadSavedSetting(text, origin);
  const absl::StatusOr<ConfigNode> now = ReadSavedSetting(now_text, origin);
  if (!saved.ok() || !now.ok() || saved->items().empty() || now->items().empty()) return absl::OkStatus();
  const ConfigNode* node = config.FindPath(kTestTransforms);
  for (const char* name : {"Normalize", "Grayscale"}) {
    const std::string before = Conversion(*saved, name);
    const std::string after = Conversion(*now, name);
    if (before == after) continue;
    changes->push_back(absl::StrCat(name, " of the images: ", before, " in the checkpoint (", kTrainTransforms, "), ",
                                    after, " now (", kTestTransforms, ", ", node->location().ToString(), ")"));
  }
  return absl::OkStatus();
}

absl::Status AddParamsFile(const ConfigNode& config, const RunIdentity& identity, absl::string_view json,
                           absl::string_view origin, std::vector<std::string>* changes) {
  const ConfigNode* file = config.FindPath(kParamsFile);
  if (file == nullptr || file->text().empty()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const std::string before, identity.SavedSetting(kParamsFile, json, origin));
  if (IsSaved(*file, before)) return absl::OkStatus();  // training began with it
  changes->push_back(absl::StrCat(identity.Describe(kParamsFile),
                                  ", and is not read: the checkpoint of the run directory comes first; to evaluate the "
                                  "file, choose another config.CHECKPOINT.DIR"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConfigNode> ReadSavedSetting(absl::string_view text, absl::string_view origin) {
  return NodeOfSaved(text, [&](absl::string_view yaml) { return ParseYaml(yaml, std::string(origin), nullptr); });
}

absl::StatusOr<std::vector<std::string>> ChangesSinceTraining(const ConfigNode& config, const OptionCatalog& catalog,
                                                              absl::string_view json, absl::string_view origin) {
  std::vector<std::string> changes;
  if (json.empty()) return changes;
  const RunIdentity identity(config, catalog, {});
  for (const char* section : {"MODEL.TRUNK", "MODEL.HEAD"}) {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> below, identity.ChangesBelow(section, json, origin));
    for (const std::string& change : below) changes.push_back(absl::StrCat("config.", change));
  }
  SSL_RETURN_IF_ERROR(AddConversions(config, identity, json, origin, &changes));
  SSL_RETURN_IF_ERROR(AddParamsFile(config, identity, json, origin, &changes));
  return changes;
}

absl::Status CheckClassesOfCheckpoint(const std::string& checkpoint, const std::string& split,
                                      const std::vector<std::string>& names, FileSystem& file_system) {
  if (checkpoint.empty()) return absl::OkStatus();
  const std::string path = absl::StrCat(checkpoint, "/", kConfigFile);
  const absl::StatusOr<std::string> json = file_system.Read(path);
  if (absl::IsNotFound(json.status())) return absl::OkStatus();  // from before settings were recorded
  SSL_RETURN_IF_ERROR(json.status());
  return RunIdentity::CheckClasses(names, absl::StrCat("config.DATA.", split), *json, path);
}

absl::Status CheckInitialWeights(const ConfigNode& config, const OptionCatalog& catalog, const std::string& key,
                                 const std::string& checkpoints, FileSystem& file_system, Communicator& communicator) {
  const CheckpointStore store({checkpoints, 0, ""}, file_system, communicator);
  std::string passed_over;
  const absl::StatusOr<int64_t> newest = store.FindNewestValid(&passed_over);
  if (!newest.ok()) return absl::OkStatus();
  const absl::StatusOr<std::string> json = store.ReadConfig(*newest);
  if (!json.ok()) return absl::OkStatus();
  const RunIdentity identity(config, catalog, /*allow_changes=*/{});
  const absl::StatusOr<std::string> before = identity.SavedSetting(key, *json, store.StepDirectory(*newest));
  const ConfigNode& now = *config.FindPath(key);
  if (!before.ok() || IsSaved(now, *before)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(store.StepDirectory(*newest), ": the training began with other weights than those that are there ",
                   "now:\n  ", key, ": ", *before, " in the checkpoint, ", SettingText(now), " now"));
}

}  // namespace ssl
