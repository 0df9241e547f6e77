// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/task_identity.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/resume_plan.h"
#include "ssl/core/sample_digest.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

// Restores the network from the checkpoint to go on from, and says what is wrong with that; "" for nothing.
std::string Misfit(const CheckpointStore& store, const CheckpointOptions& options, Model& model) {
  if (model.parameter_shards() != nullptr) return "";  // a part of them
  const absl::StatusOr<int64_t> iteration =
      options.resume_from >= 0 ? absl::StatusOr<int64_t>(options.resume_from) : store.FindNewestValid();
  if (!iteration.ok()) return "";
  const absl::StatusOr<std::vector<NamedTensor>> tensors = store.Load(*iteration, kModelFile);
  if (!tensors.ok()) return "";
  const absl::Status restored = RestoreState(model, *tensors, kModelFile);
  return absl::IsInvalidArgument(restored) ? std::string(restored.message().substr(0, 300)) : "";
}

}  // namespace

RunIdentity IdentityOf(const ConfigNode& config, const OptionCatalog& catalog, SelfSupervisionTask& task) {
  RunIdentity identity(config, catalog, task.options().checkpoint.allow_changes);
  identity.AddCount("DATA.TRAIN.num_samples", task.num_train_samples());
  identity.SetClasses(task.train_classes());
  if (task.updates_per_epoch() == 0) return identity;  // nothing trains
  identity.SetUpdates(task.updates_per_epoch(), task.state().max_iterations);
  identity.SetSamples(DigestSamples(task.source(/*train=*/true)));
  return identity;
}

absl::Status CheckGoesOn(RunIdentity identity, const CheckpointOptions& options, FileSystem& file_system,
                         Communicator& communicator, Model& model) {
  const auto look = [&]() -> absl::Status {
    const CheckpointStore store({CheckpointDirectory(options.directory), 0, ""}, file_system, communicator);
    const absl::Status refusal = MakeResumePlan(options, identity, store, communicator.size()).status();
    if (!absl::IsInvalidArgument(refusal)) return refusal;
    identity.SetMisfit(Misfit(store, options, model));
    return MakeResumePlan(options, identity, store, communicator.size()).status();
  };
  return OnRankZero(look, "looking at the run that is there", communicator);
}

}  // namespace ssl
