// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/resume_plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/run_identity.h"

namespace ssl {
namespace {

class Planner {
 public:
  Planner(const CheckpointOptions& options, const RunIdentity& identity, const CheckpointStore& store,
          int64_t world_size)
      : options_(options), identity_(identity), store_(store), world_size_(world_size) {}

  absl::StatusOr<ResumePlan> Make() {
    SSL_RETURN_IF_ERROR(CheckOptions());
    SSL_ASSIGN_OR_RETURN(iterations_, store_.Iterations());
    SSL_RETURN_IF_ERROR(Decide());
    return std::move(plan_);
  }

 private:
  absl::Status Decide() {
    if (options_.resume_from >= 0) return GoBack();
    if (iterations_.empty()) return absl::OkStatus();
    if (options_.overwrite_existing) return Overwrite();
    if (!options_.auto_resume) return Refuse();
    SSL_ASSIGN_OR_RETURN(const int64_t newest, store_.FindNewestValid(&plan_.warning));
    return ResumeAt(newest);
  }

  absl::Status CheckOptions() const {
    if (options_.resume_from < 0 || (options_.auto_resume && !options_.overwrite_existing)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        identity_.Describe("CHECKPOINT.RESUME_FROM"), ", which contradicts ",
        identity_.Describe(options_.auto_resume ? "CHECKPOINT.OVERWRITE_EXISTING" : "CHECKPOINT.AUTO_RESUME")));
  }

  // The checkpoint is of this very run, after the start that `acted` asks for. An error says nothing about whose it is.
  absl::StatusOr<bool> IsOurs(int64_t iteration, absl::string_view acted) const {
    SSL_ASSIGN_OR_RETURN(const Manifest manifest, store_.ReadManifest(iteration));
    SSL_ASSIGN_OR_RETURN(const std::string saved, store_.ReadConfig(iteration));
    return identity_.IsSameRun(saved, acted, {manifest.world_size, world_size_});
  }

  // The checkpoint has verified: reading all of it once more would cost a start the time of a restore.
  absl::Status ResumeAt(int64_t iteration) {
    SSL_ASSIGN_OR_RETURN(const Manifest manifest, store_.ReadManifest(iteration));
    const std::string step = store_.StepDirectory(iteration);
    SSL_ASSIGN_OR_RETURN(const std::string saved, store_.ReadConfig(iteration));
    if (saved.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(step,
                       ": is from an older version of this program, which kept other state; choose another "
                       "config.CHECKPOINT.DIR, with config.MODEL.WEIGHTS_INIT.PARAMS_FILE=",
                       step, "/model.safetensors to begin with its weights"));
    }
    plan_.iteration = iteration;
    return identity_.CheckResume(saved, absl::StrCat(step, "/", kConfigFile), &plan_.notes,
                                 {manifest.world_size, world_size_}, iteration);
  }

  // RESUME_FROM. The same command again, after a stop, goes on: doing the same once more would give the same.
  absl::Status GoBack() {
    const int64_t wanted = options_.resume_from;
    const absl::StatusOr<int64_t> newest = store_.FindNewestValid(&plan_.warning);
    if (!newest.ok() && !IsDamage(newest.status())) return newest.status();
    const bool is_later = newest.ok() && *newest > wanted;
    SSL_ASSIGN_OR_RETURN(const bool went_back, is_later ? IsOurs(*newest, "CHECKPOINT.RESUME_FROM") : false);
    if (went_back) {
      plan_.notes.push_back(
          absl::StrCat("this run has gone back to iteration ", wanted, " already: it goes on from ", *newest));
      return ResumeAt(*newest);
    }
    if (!std::binary_search(iterations_.begin(), iterations_.end(), wanted)) {
      return absl::NotFoundError(
          absl::StrCat(identity_.Describe("CHECKPOINT.RESUME_FROM"), ", and there is no ", store_.StepDirectory(wanted),
                       "; checkpoints: ", iterations_.empty() ? "none" : absl::StrJoin(iterations_, ", ")));
    }
    SSL_RETURN_IF_ERROR(store_.Verify(wanted).status());
    plan_.warning.clear();  // it is about the newest
    return ResumeAt(wanted);
  }

  // OVERWRITE_EXISTING. The same command after a stop goes on, as it would without; also when the training itself is
  // finished, because an evaluation, or a later run of a sweep, may be what was stopped.
  absl::Status Overwrite() {
    plan_.removes_earlier = true;
    if (!options_.auto_resume) return absl::OkStatus();
    const absl::StatusOr<int64_t> newest = store_.FindNewestValid(&plan_.warning);
    if (!newest.ok()) return IsDamage(newest.status()) ? absl::OkStatus() : newest.status();
    SSL_ASSIGN_OR_RETURN(const bool ours, IsOurs(*newest, "CHECKPOINT.OVERWRITE_EXISTING"));
    if (!ours) return absl::OkStatus();
    plan_.removes_earlier = false;
    plan_.notes.push_back(absl::StrCat(store_.StepDirectory(*newest),
                                       " is of this very configuration: the run goes on, and nothing is overwritten; "
                                       "with config.CHECKPOINT.AUTO_RESUME=False it would start anew"));
    return ResumeAt(*newest);
  }

  absl::Status Refuse() const {
    return absl::InvalidArgumentError(absl::StrCat(
        identity_.Describe("CHECKPOINT.AUTO_RESUME"), ", and there are checkpoints already, the newest ",
        store_.StepDirectory(iterations_.back()),
        "; config.CHECKPOINT.AUTO_RESUME=True goes on from it, config.CHECKPOINT.OVERWRITE_EXISTING=True removes them, "
        "or choose another config.CHECKPOINT.DIR"));
  }

  const CheckpointOptions& options_;
  const RunIdentity& identity_;
  const CheckpointStore& store_;
  const int64_t world_size_;
  std::vector<int64_t> iterations_;
  ResumePlan plan_;
};

}  // namespace

absl::StatusOr<ResumePlan> MakeResumePlan(const CheckpointOptions& options, const RunIdentity& identity,
                                          const CheckpointStore& store, int64_t world_size) {
  return Planner(options, identity, store, world_size).Make();
}

absl::StatusOr<ResumePlan> CheckResume(const ConfigNode& config, const OptionCatalog& catalog, FileSystem& file_system,
                                       Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions options, ReadTaskOptions(config));
  const RunIdentity identity(config, catalog, options.checkpoint.allow_changes);
  const CheckpointStore store({CheckpointDirectory(options.checkpoint.directory), 0, ""}, file_system, communicator);
  return MakeResumePlan(options.checkpoint, identity, store, communicator.size());
}

}  // namespace ssl
