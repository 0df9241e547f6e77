// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpointer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/rank_state.h"
#include "ssl/core/sharded_state.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

// Which file of rank 0 a scope's tensors go to. The last entry takes what no other one takes.
struct FileRule {
  absl::string_view scope;  // outermost scope with its '/'; "" for all the rest
  const char* file;
};
constexpr FileRule kFilesOfRankZero[] = {
    {"model/", kModelFile}, {"optimizer/", "optimizer.safetensors"}, {"", "state_rank0.safetensors"}};

const FileRule& RuleFor(absl::string_view name) {
  for (const FileRule& rule : kFilesOfRankZero) {
    if (absl::StartsWith(name, rule.scope)) return rule;
  }
  return kFilesOfRankZero[0];  // not reached: every name begins with ""
}

constexpr char kRestoring[] = "restoring";
constexpr char kFinishing[] = "noting that the run is finished";

std::string FileOfRank(int64_t rank) { return absl::StrCat("state_rank", rank, ".safetensors"); }

std::vector<CheckpointPart> PartsOfRankZero(const std::vector<NamedTensor>& state) {
  std::vector<CheckpointPart> parts;
  for (const FileRule& rule : kFilesOfRankZero) {
    CheckpointPart& part = parts.emplace_back(CheckpointPart{rule.file, {}});
    for (const NamedTensor& entry : state) {
      if (&RuleFor(entry.name) != &rule) continue;
      part.tensors.push_back({std::string(absl::StripPrefix(entry.name, rule.scope)), entry.tensor});
    }
  }
  return parts;
}

// The number that the walk saved under `name`; -1 when it has none.
int64_t NumberIn(const std::vector<NamedTensor>& state, absl::string_view name) {
  for (const NamedTensor& entry : state) {
    if (entry.name == name && entry.tensor.scalar_type() == at::kLong && entry.tensor.numel() == 1) {
      return entry.tensor.item<int64_t>();
    }
  }
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpointer>> Checkpointer::Make(CheckpointerOptions options, FileSystem& file_system,
                                                                 Communicator& communicator, Stateful& root,
                                                                 const TrainState& state) {
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> own, communicator.Duplicate());
  return std::unique_ptr<Checkpointer>(
      new Checkpointer(std::move(options), file_system, std::move(own), communicator, root, state));
}

Checkpointer::Checkpointer(CheckpointerOptions options, FileSystem& file_system, std::unique_ptr<Communicator> own,
                           Communicator& communicator, Stateful& root, const TrainState& state)
    : options_(std::move(options)),
      own_communicator_(std::move(own)),
      store_(options_.store, file_system, *own_communicator_),
      communicator_(communicator),
      root_(root),
      state_(state) {}

absl::StatusOr<int64_t> Checkpointer::AskRankZero(const std::string& what,
                                                  const std::function<absl::StatusOr<int64_t>()>& question) {
  int64_t said = 0;
  const auto ask = [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(said, question());
    return absl::OkStatus();
  };
  SSL_RETURN_IF_ERROR(OnRankZero(ask, what, communicator_));
  at::Tensor answer = at::full({1}, said, at::kLong);
  SSL_RETURN_IF_ERROR(communicator_.Broadcast(answer, 0));
  return answer.item<int64_t>();
}

absl::StatusOr<ResumePlan> Checkpointer::Plan(const CheckpointOptions& options, const RunIdentity& identity) {
  ResumePlan plan;
  const auto look = [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(plan, MakeResumePlan(options, identity, store_, communicator_.size()));
    if (!plan.warning.empty()) SSL_LOG(WARNING) << plan.warning;
    for (const std::string& note : plan.notes) SSL_LOG(INFO) << note;
    return absl::OkStatus();
  };
  SSL_RETURN_IF_ERROR(OnRankZero(look, "looking at the checkpoints", communicator_));
  at::Tensor decided = at::full({2}, plan.iteration, at::kLong);
  decided[1].fill_(plan.removes_earlier ? 1 : 0);
  SSL_RETURN_IF_ERROR(communicator_.Broadcast(decided, 0));
  plan.iteration = decided[0].item<int64_t>();
  plan.removes_earlier = decided[1].item<int64_t>() == 1;
  return plan;
}

absl::Status Checkpointer::RemoveAll() {
  return OnRankZero([this] { return store_.RemoveAll(); }, "removing the checkpoints of an earlier run", communicator_);
}

// Into contiguous memory of the host: the writing thread has no arithmetic to do then.
void Checkpointer::Stage(std::vector<NamedTensor>* state) {
  for (NamedTensor& entry : *state) {
    at::Tensor& copy = staged_[entry.name];
    if (!copy.defined() || copy.sizes() != entry.tensor.sizes() || copy.scalar_type() != entry.tensor.scalar_type()) {
      copy = at::empty(entry.tensor.sizes(), entry.tensor.scalar_type());
    }
    copy.copy_(entry.tensor.detach());
    entry.tensor = copy;
  }
}

absl::Status Checkpointer::Save() {
  SSL_RETURN_IF_ERROR(Keep());
  return SaveState();
}

// A name may have made the checkpoint replaceable before, in this process or an earlier one.
absl::Status Checkpointer::Keep() {
  kept_iteration_ = state_.iteration;
  if (replaceable_iteration_ != state_.iteration) return absl::OkStatus();
  replaceable_iteration_ = -1;
  return OnRankZero([this] { return store_.Keep(state_.iteration); }, "keeping a checkpoint", communicator_);
}

absl::Status Checkpointer::SaveState() {
  const int64_t iteration = state_.iteration;
  const Asked asked = {iteration, state_.finished(options_.num_phases), IsWithinPhase(), iteration == within_phase_};
  if (IsAskedFor(asked)) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(WaitForTask());
  SavedState state;
  const absl::Status collected = GuardTorch("collecting the state", [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(state.own, CollectFiniteState(root_));
    return absl::OkStatus();
  });
  const std::string newest = last_saved_ >= 0 ? store_.StepDirectory(last_saved_) : "none";
  SSL_RETURN_IF_ERROR(AgreeOnStatus(Annotate(collected, absl::StrCat("nothing is saved at iteration ", iteration,
                                                                     " (the newest checkpoint: ", newest, ")")),
                                    "collecting the state", communicator_));
  SSL_RETURN_IF_ERROR(GuardTorch("putting the state together", [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(state.whole, TakeWholeState(options_.model, &state.own));
    if (options_.in_background) Stage(&state.own);
    return absl::OkStatus();
  }));
  SSL_RETURN_IF_ERROR(options_.in_background ? StartWriting(asked, std::move(state)) : WriteGuarded(asked, state));
  asked_ = asked;
  within_phase_ = asked.within_phase ? iteration : -1;
  return absl::OkStatus();
}

bool Checkpointer::IsAskedFor(const Asked& asked) const {
  return asked_.iteration == asked.iteration && asked_.finished == asked.finished &&
         asked_.within_phase == asked.within_phase;
}

absl::Status Checkpointer::StartWriting(const Asked& asked, SavedState state) {
  // The thread begins when every rank has one: else it would wait for the others in the first collective operation.
  std::promise<bool> all_started;
  const auto work = [this, asked, state = std::move(state), begin = all_started.get_future().share()] {
    return begin.get() ? WriteGuarded(asked, state) : absl::OkStatus();
  };
  const absl::Status status = AgreeOnStatus(task_.Start(work), "starting to write a checkpoint", communicator_);
  all_started.set_value(status.ok());
  if (!status.ok()) LetEnd();
  return status;
}

absl::Status Checkpointer::WriteGuarded(const Asked& asked, const SavedState& state) {
  bool broke_off = true;
  const absl::Status status = GuardTorch("writing a checkpoint", [&] {
    absl::Status written = Write(asked, state);
    broke_off = false;
    return written;
  });
  // Those who write on other ranks may wait for this one in an operation that it will never begin, such as for the text
  // of an error for which there was no memory. They learn of it now; no later save finds them, and says why.
  if (broke_off) own_communicator_->Abort(status);
  return status;
}

absl::Status Checkpointer::Write(const Asked& asked, const SavedState& state) {
  const int64_t rank = own_communicator_->rank();
  SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> own, StateOfItsOwn(state.own, *own_communicator_));
  own.insert(own.end(), state.whole.begin(), state.whole.end());
  std::vector<CheckpointPart> parts;
  if (rank == 0) {
    parts = PartsOfRankZero(own);
  } else {
    parts.push_back({FileOfRank(rank), std::move(own)});
  }
  SSL_RETURN_IF_ERROR(store_.Save(asked.iteration, parts, asked.replaces));
  last_saved_ = asked.iteration;
  if (!asked.finished) return absl::OkStatus();
  return OnRankZero([&] { return store_.MarkFinished(asked.iteration); }, kFinishing, *own_communicator_);
}

absl::Status Checkpointer::MarkFinished(const std::string& why_early) {
  return OnRankZero([&] { return store_.MarkFinished(last_saved_, why_early); }, kFinishing, communicator_);
}

// Nothing has a name before it is on disk.
absl::Status Checkpointer::SaveAs(const std::string& name, bool replaceable) {
  SSL_RETURN_IF_ERROR(replaceable ? SaveState() : Save());
  SSL_RETURN_IF_ERROR(Wait());
  const bool is_replaceable = replaceable && kept_iteration_ != state_.iteration;
  if (is_replaceable) replaceable_iteration_ = state_.iteration;
  const auto set = [&] { return store_.SetName(name, state_.iteration, is_replaceable); };
  return OnRankZero(set, "naming a checkpoint", communicator_);
}

absl::StatusOr<int64_t> Checkpointer::Named(const std::string& name) {
  return AskRankZero("reading the names of checkpoints", [&]() -> absl::StatusOr<int64_t> {
    SSL_ASSIGN_OR_RETURN(const auto names, store_.Names());
    const auto found = names.find(name);
    return found == names.end() ? -1 : found->second;
  });
}

absl::StatusOr<bool> Checkpointer::NameSaved(const std::string& name, int64_t iteration) {
  SSL_RETURN_IF_ERROR(Wait());
  SSL_ASSIGN_OR_RETURN(
      const int64_t is_there, AskRankZero("naming a checkpoint", [&]() -> absl::StatusOr<int64_t> {
        SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> iterations, store_.Iterations());
        bool there = std::binary_search(iterations.begin(), iterations.end(), iteration);
        const absl::Status verified = there ? store_.Verify(iteration).status() : absl::OkStatus();
        if (IsDamage(verified)) there = false;
        if (there) SSL_RETURN_IF_ERROR(verified);
        SSL_RETURN_IF_ERROR(there ? store_.SetName(name, iteration, /*replaceable=*/false) : store_.DropName(name));
        return there ? 1 : 0;
      }));
  return is_there == 1;
}

absl::Status Checkpointer::Poll() {
  if (!task_.started()) return absl::OkStatus();
  // All ranks learn of it at the same step.
  SSL_ASSIGN_OR_RETURN(const bool writes, AnyRank(!task_.done(), communicator_));
  return writes ? absl::OkStatus() : Wait();
}

absl::Status Checkpointer::WaitForTask() {
  absl::Status status;
  if (task_.started()) status = AgreeOnStatus(FinishTask(), "writing a checkpoint", communicator_);
  if (status.ok()) return status;
  if (asked_.replaces) within_phase_ = asked_.iteration;
  asked_ = {};
  return status;
}

absl::Status Checkpointer::Wait() {
  SSL_RETURN_IF_ERROR(WaitForTask());
  // After the last save of a run, nothing else would.
  const auto tidy_up = [this] {
    store_.TidyUpAgain();
    return absl::OkStatus();
  };
  return OnRankZero(tidy_up, "tidying up checkpoints", communicator_);
}

void Checkpointer::LetEnd() {
  if (task_.started()) FinishTask().IgnoreError();
}

// The thread waits for those of the other ranks.
absl::Status Checkpointer::FinishTask() {
  absl::Status status;
  communicator_.LetOthersGoOn([&] { status = task_.Finish(); });
  return status;
}

absl::StatusOr<std::vector<NamedTensor>> Checkpointer::LoadOfRank(int64_t iteration, int64_t rank) const {
  if (rank != 0) return store_.Load(iteration, FileOfRank(rank));
  std::vector<NamedTensor> state;
  for (const FileRule& rule : kFilesOfRankZero) {
    SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> part, store_.Load(iteration, rule.file));
    for (NamedTensor& entry : part) state.push_back({absl::StrCat(rule.scope, entry.name), std::move(entry.tensor)});
  }
  return state;
}

absl::StatusOr<std::vector<NamedTensor>> Checkpointer::Load(int64_t iteration) {
  Manifest manifest;
  WalkedState walked;
  const auto look = [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(manifest, store_.ReadManifest(iteration));
    SSL_ASSIGN_OR_RETURN(walked, WalkState(root_));
    return absl::OkStatus();
  };
  SSL_RETURN_IF_ERROR(AgreeOnWork(look, kRestoring, communicator_));
  SavedRanks saved(manifest.world_size, [&](int64_t rank) { return LoadOfRank(iteration, rank); });
  absl::StatusOr<std::vector<NamedTensor>> state = saved.StateOf(walked, communicator_);
  SSL_RETURN_IF_ERROR(Annotate(state.status(), store_.StepDirectory(iteration)));
  const std::string change = saved.DescribeChange(walked, communicator_);
  if (!change.empty() && communicator_.rank() == 0) {
    SSL_LOG(INFO) << store_.StepDirectory(iteration) << ": " << change;
  }
  return state;
}

absl::Status Checkpointer::CheckLoaded(const std::vector<NamedTensor>& state, int64_t iteration) const {
  const std::string step = store_.StepDirectory(iteration);
  const int64_t found = NumberIn(state, "train_state/iteration");
  if (found != iteration) {
    return absl::DataLossError(absl::StrCat(step, ": its state is of iteration ", found, ", expected ", iteration));
  }
  if (iteration <= state_.max_iterations) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(step, ": lies behind the end of this run: iteration ", iteration, " of ", state_.max_iterations,
                   "; raise config.OPTIMIZER.num_epochs, or choose another config.CHECKPOINT.DIR"));
}

// Tensors of files are read as they are copied.
absl::Status Checkpointer::TakeLoaded(int64_t iteration, const absl::StatusOr<std::vector<NamedTensor>>& loaded) {
  const absl::Status restored = GuardTorch(kRestoring, [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> state, loaded);
    SSL_RETURN_IF_ERROR(KeepOwnRows(options_.model, &state));
    SSL_RETURN_IF_ERROR(CheckLoaded(state, iteration));
    SSL_RETURN_IF_ERROR(RestoreState(root_, state, store_.StepDirectory(iteration)));
    if (options_.after_restore == nullptr) return absl::OkStatus();
    return Annotate(options_.after_restore(), store_.StepDirectory(iteration));
  });
  if (!absl::IsDataLoss(restored)) return restored;
  return Annotate(restored, "no resuming (config.CHECKPOINT.RESUME_FROM=STEP goes back to another checkpoint)");
}

absl::Status Checkpointer::Restore(int64_t iteration) {
  const absl::StatusOr<std::vector<NamedTensor>> loaded = Load(iteration);
  SSL_RETURN_IF_ERROR(AgreeOnWork([&] { return TakeLoaded(iteration, loaded); }, kRestoring, communicator_));
  last_saved_ = iteration;
  if (IsWithinPhase()) within_phase_ = iteration;
  SSL_ASSIGN_OR_RETURN(const int64_t is_replaceable, AskRankZero(kRestoring, [&]() -> absl::StatusOr<int64_t> {
                         SSL_ASSIGN_OR_RETURN(const bool replaceable, store_.IsReplaceable(iteration));
                         return replaceable ? 1 : 0;
                       }));
  (is_replaceable == 1 ? replaceable_iteration_ : kept_iteration_) = iteration;
  const auto set_aside = [&]() -> absl::Status {
    // Without updates to come, only what measures the end of the run is done again.
    if (state_.iteration < state_.max_iterations) SSL_RETURN_IF_ERROR(store_.DropFinished());
    return store_.SetAsideAfter(iteration);
  };
  return OnRankZero(set_aside, "setting checkpoints aside", communicator_);
}

absl::StatusOr<int64_t> RestoreModel(const std::string& checkpoint_directory, FileSystem& file_system,
                                     Communicator& communicator, Stateful& model) {
  CheckpointStore store({checkpoint_directory, 0, ""}, file_system, communicator);
  return store.ReadNewest([&](int64_t iteration) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, store.Load(iteration, kModelFile));
    return RestoreState(model, tensors, absl::StrCat(store.StepDirectory(iteration), "/", kModelFile));
  });
}

}  // namespace ssl
