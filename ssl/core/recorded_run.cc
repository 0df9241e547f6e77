// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/recorded_run.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/core/checkpoint_store.h"
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
  absl::StatusOr<SavedSettings> settings = ParseSavedSettings(*json, /*with_counts=*/false, run.origin);
  if (!settings.ok()) return std::nullopt;
  run.settings = *std::move(settings);
  run.ranks = manifest->world_size;
  return run;
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

}  // namespace ssl
