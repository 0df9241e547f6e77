// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/recorded_run.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/config/reader.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/core_options.h"
#include "ssl/distributed/local_communicator.h"

namespace ssl {
namespace {

// Nothing where they were removed, or are damaged.
std::optional<RecordedRun> ReadRun(const CheckpointStore& store, int64_t iteration) {
  RecordedRun run;
  run.origin = absl::StrCat(store.StepDirectory(iteration), "/", kConfigFile);
  const absl::StatusOr<std::string> json = store.ReadConfig(iteration);
  const absl::StatusOr<Manifest> manifest = store.ReadManifest(iteration);
  if (!json.ok() || json->empty() || !manifest.ok()) return std::nullopt;
  absl::StatusOr<SavedSettings> settings = ParseSavedSettings(*json, /*with_counts=*/true, run.origin);
  if (!settings.ok()) return std::nullopt;
  run.settings = *std::move(settings);
  run.ranks = manifest->world_size;
  return run;
}

// The run that a start in CHECKPOINT.DIR goes on with, as far as its data tells.
std::optional<RecordedRun> RunThatGoesOn(const ConfigNode& config) {
  constexpr char kPaths[] = "DATA.TRAIN.DATA_PATHS";
  CheckpointOptions options;
  const absl::Status read =
      ReadOptions(config.Section("CHECKPOINT"), "config.CHECKPOINT", UnknownKeys::kIgnore, &options);
  if (!read.ok() || options.directory.empty()) return std::nullopt;
  std::optional<RecordedRun> run = FindRecordedRun(options.directory, PosixFileSystem());
  if (!run.has_value() || !options.overwrite_existing) return run;
  const ConfigNode* now = config.FindPath(kPaths);
  const bool goes_on = options.auto_resume && now != nullptr && NamesSamePlaces(run->settings, kPaths, *now);
  return goes_on ? std::move(run) : std::nullopt;
}

}  // namespace

std::optional<RecordedRun> FindRecordedRun(const std::string& run_directory, FileSystem& file_system) {
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  const CheckpointStore store({CheckpointDirectory(run_directory), 0, ""}, file_system, *alone);
  std::vector<int64_t> listed;
  while (true) {
    absl::StatusOr<std::vector<int64_t>> now = store.Iterations();
    // A run that goes on beside this process may have removed what was listed. Each round needs another save of it.
    if (!now.ok() || now->empty() || *now == listed) return std::nullopt;
    listed = *std::move(now);
    for (auto iteration = listed.rbegin(); iteration != listed.rend(); ++iteration) {
      std::optional<RecordedRun> run = ReadRun(store, *iteration);
      if (run.has_value()) return run;
    }
  }
}

absl::Status ResolveGrey16(const Registries& registries, ConfigNode* config) {
  const ConfigNode defaults = registries.options.Defaults();
  std::map<std::string, ConfigNode> open;  // the defaults of what nobody sets: they tell themselves by their place
  for (const absl::string_view split : {"DATA.TRAIN", "DATA.TEST"}) {
    const std::string key = absl::StrCat(split, kGrey16);
    const ConfigNode* now = config->FindPath(key);
    const ConfigNode* usual = defaults.FindPath(key);
    if (now == nullptr || usual == nullptr || *now != *usual) continue;
    const SourceLocation& place = now->location();
    if (place.file == usual->location().file && place.line == usual->location().line) open[key] = *usual;
  }
  const std::optional<RecordedRun> run = open.empty() ? std::nullopt : RunThatGoesOn(*config);
  if (!run.has_value()) return absl::OkStatus();
  std::vector<std::string> kept;
  for (const auto& [key, usual] : open) {
    const auto saved = run->settings.find(key);
    ConfigNode value = ConfigNode::FromString(saved == run->settings.end() ? kGrey16BeforeTheKey : saved->second);
    if (value == usual) continue;
    kept.push_back(absl::StrCat("config.", key, "=", value.text()));
    value.Relocate(usual.location());  // nobody has set it
    config->SetPath(key, std::move(value));
  }
  if (!kept.empty()) SSL_LOG(INFO) << absl::StrJoin(kept, ", ") << ", as the run that lies there: " << run->origin;
  return absl::OkStatus();
}

}  // namespace ssl
