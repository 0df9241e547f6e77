// SPDX-License-Identifier: Apache-2.0
//
// Next stops for a reader: ssl/core/self_supervision_task.cc builds the parts, ssl/core/trainer.cc runs them.
#include "ssl/core/session.h"

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/merge.h"
#include "ssl/core/autocast.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/core_options.h"
#include "ssl/core/device_memory.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/last_batch.h"
#include "ssl/core/model_replicas.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/register_core.h"
#include "ssl/core/resume_position.h"
#include "ssl/core/run_device.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/task_identity.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/local_communicator.h"

namespace ssl {
namespace {

// What programs note of a training, beside what its hooks and sinks declare (ComponentOptions::leaves). What
// evaluations leave there is the program's to remove (removed_earlier_run).
constexpr char kResults[] = "results.json";

// Removes what in `folder` begins with `prefix`, and the folder when nothing else is in it.
absl::Status RemoveFrom(const std::string& folder, absl::string_view prefix, FileSystem& file_system) {
  if (!file_system.IsDirectory(folder)) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system.List(folder));
  bool is_empty = true;
  for (const std::string& name : names) {
    const bool is_ours = absl::StartsWith(name, prefix);
    if (is_ours) SSL_RETURN_IF_ERROR(file_system.RemoveAll(absl::StrCat(folder, "/", name)));
    is_empty = is_empty && is_ours;
  }
  return is_empty ? file_system.RemoveAll(folder) : absl::OkStatus();
}

// left: as ComponentOptions::leaves says it.
absl::Status RemoveLeft(const std::string& run_directory, absl::string_view left, FileSystem& file_system) {
  for (size_t slash = left.find('/'); slash != absl::string_view::npos; slash = left.find('/', slash + 1)) {
    const std::string folder = absl::StrCat(run_directory, "/", left.substr(0, slash));
    // Output follows no link (ssl/io/output_folder.h), so that what this one leads to is not the run's.
    if (!CheckNoLink(folder).ok()) return file_system.RemoveAll(folder);
  }
  const bool is_prefix = absl::StrContains(left, '/') && absl::ConsumeSuffix(&left, "*");
  const std::string path = absl::StrCat(run_directory, "/", left);
  if (!is_prefix) return file_system.RemoveAll(path);
  return RemoveFrom(ParentDirectory(path), left.substr(left.rfind('/') + 1), file_system);
}

// What LibTorch keeps per thread and per process, as a run needs it while one of its calls lasts; then the host's.
struct RunScope {
  explicit RunScope(const c10::Device& run_device) : device(run_device) {}

  c10::DeviceGuard device;  // first: what a thread draws from is the generator of its current device
  GeneratorScope generator;
  AutocastScope autocast{Autocast::kOff};  // the steps turn on what the run computes in
  c10::AutoGradMode gradients{true};
};

// The one place where a host's call enters the run: nothing is thrown through it.
absl::Status Guarded(absl::string_view what, const c10::Device& device, absl::FunctionRef<absl::Status()> call) {
  const auto enter = [&] {
    const RunScope scope(device);
    return call();
  };
  return WithMemoryAdvice(GuardTorch(what, enter), device);
}

// A change may ask for state that the checkpoint does not have, and the names of the state do not tell its key.
absl::Status WithAllowedChanges(const absl::Status& restored, const std::vector<std::string>& allowed) {
  if (!absl::IsInvalidArgument(restored) || allowed.empty()) return restored;
  return absl::InvalidArgumentError(
      absl::StrCat(restored.message(), "; config.CHECKPOINT.ALLOW_CHANGES lets ", absl::StrJoin(allowed, ", "),
                   " differ from the run that saved it: take back what needs other state, or start a run of its own "
                   "with config.MODEL.WEIGHTS_INIT"));
}

}  // namespace

absl::StatusOr<ConfigNode> ResolveConfig(const ConfigNode& config, const Registries& registries) {
  ConfigNode resolved = registries.options.Defaults();
  MergeInto(&resolved, config);
  for (const Resolver& resolve : registries.resolvers) SSL_RETURN_IF_ERROR(resolve(registries, &resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const ConfigNode& config, const Registries& registries,
                                                         SessionOptions options) {
  auto session = std::unique_ptr<Session>(new Session());
  session->registries_ = registries;
  SSL_RETURN_IF_ERROR(RegisterCore(&session->registries_));
  SSL_ASSIGN_OR_RETURN(session->config_, ResolveConfig(config, session->registries_));
  SSL_RETURN_IF_ERROR(Guarded("taking the device", c10::kCPU, [&] { return session->Enter(options); }));
  SSL_RETURN_IF_ERROR(
      Guarded("building the session", session->device_, [&] { return session->Build(std::move(options)); }));
  return session;
}

Session::~Session() = default;

BuildContext Session::MakeContext() const {
  const CheckpointOptions& checkpoint = options_.checkpoint;
  const int64_t first_iteration = trainer_ != nullptr ? state().iteration : 0;
  return {config_,         registries_,   *communicator_, options_.run.seed, checkpoint.directory,
          first_iteration, *file_system_, stop_};
}

absl::Status Session::Enter(const SessionOptions& options) {
  own_communicator_ = MakeLocalCommunicator();
  untimed_communicator_ = options.communicator != nullptr ? options.communicator : own_communicator_.get();
  communicator_ = std::make_unique<TimedCommunicator>(*untimed_communicator_);
  stop_ = options.stop != nullptr ? options.stop : &own_stop_;
  file_system_ = options.file_system != nullptr ? options.file_system : &PosixFileSystem();
  progress_ = options.progress != nullptr ? options.progress : &own_progress_;
  *progress_ = RunProgress();
  only_preview_ = options.only_preview;
  without_device_ = options.without_device;
  progress_->rank = communicator_->rank();

  SSL_ASSIGN_OR_RETURN(options_, ReadTaskOptions(config_));
  if (only_preview_ || without_device_) return absl::OkStatus();  // it computes nothing
  SSL_ASSIGN_OR_RETURN(device_, RunDevice(options_.machine, config_, *communicator_));
  return absl::OkStatus();
}

absl::Status Session::Build(SessionOptions options) {
  const BuildContext context = MakeContext();
  HostSources sources{std::move(options.train_source), std::move(options.test_source)};
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<SelfSupervisionTask> task,
                       SelfSupervisionTask::Build(options_, context, std::move(sources), device_));
  trainer_ = std::make_unique<Trainer>(std::move(task), *communicator_, *stop_);
  if (!options_.checkpoint.directory.empty() && only_preview_) {
    SSL_RETURN_IF_ERROR(CheckGoesOn(IdentityOf(config_, registries_.options, trainer_->task()), options_.checkpoint,
                                    *file_system_, *communicator_, model()));
  } else if (!options_.checkpoint.directory.empty()) {
    SSL_RETURN_IF_ERROR(OpenRunDirectory(options.run_directory));
    SSL_RETURN_IF_ERROR(BuildCheckpointer());
  }
  SSL_RETURN_IF_ERROR(CheckKeepsItsWeights());
  const bool needs_weights = !Resumes() && !only_preview_ && registries_.initialize_weights != nullptr;
  if (needs_weights) SSL_RETURN_IF_ERROR(InitializeWeights(context));
  SSL_RETURN_IF_ERROR(TryLastBatch(config_, trainer_->task(), *communicator_));
  SSL_RETURN_IF_ERROR(trainer_->Prepare());
  if (registries_.configured_hooks != nullptr) {
    BuildContext for_hooks = context;
    for_hooks.method = &trainer_->task().method();
    for_hooks.hook_names = trainer_->HookNames();
    absl::StatusOr<std::vector<std::unique_ptr<Hook>>> hooks = registries_.configured_hooks(for_hooks);
    // One rank alone may lack a file or be stopped, while the others wait for it in what hooks do at their start.
    SSL_RETURN_IF_ERROR(AgreeOnStatus(hooks.status(), "making the hooks", *communicator_));
    for (std::unique_ptr<Hook>& hook : *hooks) SSL_RETURN_IF_ERROR(trainer_->AddHook(std::move(hook)));
  }
  return absl::OkStatus();
}

// A run that is killed before its first save begins anew, and cannot with weights of the run that it has removed.
absl::Status Session::CheckKeepsItsWeights() const {
  const ConfigNode* weights = config_.FindPath("MODEL.WEIGHTS_INIT.PARAMS_FILE");
  if (!plan_.removes_earlier || weights == nullptr || !weights->is_scalar() || weights->text().empty()) {
    return absl::OkStatus();
  }
  std::error_code unknown;  // then the paths are compared as they are
  const std::filesystem::path directory = std::filesystem::weakly_canonical(options_.checkpoint.directory, unknown);
  const std::filesystem::path file = std::filesystem::weakly_canonical(weights->text(), unknown);
  if (std::mismatch(directory.begin(), directory.end(), file.begin(), file.end()).first != directory.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      weights->location().ToString(), ": config.MODEL.WEIGHTS_INIT.PARAMS_FILE is ", weights->text(),
      ", inside the run that config.CHECKPOINT.OVERWRITE_EXISTING=True removes; copy it out of there, or choose ",
      "another config.CHECKPOINT.DIR"));
}

// Each rank reads the weights itself, and a run that saves meanwhile may give each another checkpoint: all begin with
// what rank 0 has read. initialize_weights calls no collective operation.
absl::Status Session::InitializeWeights(const BuildContext& context) {
  const auto load = [&] { return registries_.initialize_weights(model(), context); };
  SSL_RETURN_IF_ERROR(AgreeOnWork(load, "loading weights", *communicator_));
  return CopyFromRankZero(model(), *communicator_);
}

absl::Status Session::OpenRunDirectory(const RunDirectory* held) {
  const std::string& path = options_.checkpoint.directory;
  run_directory_ = held;
  if (held == nullptr) {
    SSL_ASSIGN_OR_RETURN(own_run_directory_, RunDirectory::Open(path, *file_system_, *communicator_));
    run_directory_ = own_run_directory_.get();
  }
  if (run_directory_->path() == path) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("SessionOptions::run_directory is ", run_directory_->path(),
                                                 ", expected config.CHECKPOINT.DIR, which is ", path));
}

absl::Status Session::BuildCheckpointer() {
  const CheckpointOptions& options = options_.checkpoint;
  const RunIdentity identity = IdentityOf(config_, registries_.options, trainer_->task());
  CheckpointerOptions checkpointer;
  checkpointer.store.directory = CheckpointDirectory(options.directory);
  checkpointer.store.keep_last = options.keep_last;
  checkpointer.store.config_json = identity.ToJson();
  checkpointer.store.config_hash = absl::StrFormat("crc32c:%08x", Crc32c(checkpointer.store.config_json));
  checkpointer.store.run_directory = run_directory_;
  checkpointer.num_phases = static_cast<int64_t>(trainer_->task().phases().size());
  checkpointer.in_background = options.save_in_background;
  checkpointer.model = &model();
  checkpointer.after_restore = [task = &trainer_->task()] {
    return FitPosition(task->phases(), task->updates_per_epoch(), &task->state());
  };
  SSL_ASSIGN_OR_RETURN(checkpointer_, Checkpointer::Make(std::move(checkpointer), *file_system_, *untimed_communicator_,
                                                         *trainer_, trainer_->task().state()));
  SSL_ASSIGN_OR_RETURN(plan_, checkpointer_->Plan(options, identity));
  trainer_->SetCheckpoints(checkpointer_.get());
  return absl::OkStatus();
}

// Not before the new run is whole: a weights file that is missing must not cost an earlier run. Checkpoints last: while
// they are there, the next start knows that there is something to remove.
absl::Status Session::RemoveEarlierRun() {
  const auto remove = [this] {
    SSL_LOG(WARNING) << "removing what an earlier run left in " << run_directory_->path();
    absl::Status status = RemoveLeft(run_directory_->path(), kResults, *file_system_);
    // Of all that is registered: the earlier run may have had other hooks.
    for (const auto* components : {&registries_.hook_components, &registries_.sink_components}) {
      for (const auto& [name, component] : *components) {
        for (const std::string& left : component.make_options()->leaves()) {
          status.Update(RemoveLeft(run_directory_->path(), left, *file_system_));
        }
      }
    }
    return status;
  };
  SSL_RETURN_IF_ERROR(OnRankZero(remove, "removing the records of an earlier run", *communicator_));
  return checkpointer_->RemoveAll();
}

absl::Status Session::AddHook(std::unique_ptr<Hook> hook) {
  if (!started_ && !ended_ && failure_.ok()) return trainer_->AddHook(std::move(hook));
  return absl::FailedPreconditionError(
      absl::StrCat("hook '", hook->name(), "' is added after the run has started, expected before"));
}

absl::Status Session::CheckUsable() const {
  SSL_RETURN_IF_ERROR(failure_);
  if (only_preview_) return absl::FailedPreconditionError("this session was made for a preview only, and cannot run");
  if (!ended_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this session has ended, at iteration ", state().iteration, " of ",
                                                    state().max_iterations, "; a new one goes on"));
}

absl::Status Session::Note(const char* phase, absl::Status status) {
  if (checkpointer_ != nullptr) progress_->last_checkpoint = checkpointer_->last_saved();
  if (!failure_.ok()) return status;
  failure_ = status;
  progress_->phase = phase;
  progress_->iteration = state().iteration;
  progress_->epoch = state().train_phase_index;
  if (status.ok()) return status;
  progress_->failing_hook = trainer_->hook_failure().hook;
  progress_->failing_event = trainer_->hook_failure().event;
  // The others may wait for this rank in an operation that it never begins: they learn of it now.
  if (!IsKnownToAllRanks(status)) communicator_->Abort(status);
  return status;
}

absl::Status Session::Start() {
  SSL_RETURN_IF_ERROR(CheckUsable());
  if (started_) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(Note("starting", Guarded("starting", device_, [this] { return StartRun(); })));
  started_ = true;
  return absl::OkStatus();
}

absl::Status Session::StartRun() {
  if (plan_.removes_earlier) SSL_RETURN_IF_ERROR(RemoveEarlierRun());
  if (checkpointer_ != nullptr) SSL_RETURN_IF_ERROR(checkpointer_->Open());
  // Weights have been loaded into whole parameters; what is restored goes into shards.
  if (model().parameter_shards() != nullptr) model().parameter_shards()->Release(/*take_over=*/true);
  SSL_RETURN_IF_ERROR(Restore());
  SSL_RETURN_IF_ERROR(CheckParametersAreEqual(model(), *communicator_));
  SSL_RETURN_IF_ERROR(AgreeOnStatus(AddConfiguredSinks(), "opening the metrics", *communicator_));
  return trainer_->Start();
}

absl::Status Session::AddConfiguredSinks() {
  if (registries_.configured_sinks == nullptr || communicator_->rank() != 0) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<MetricSink>> sinks, registries_.configured_sinks(MakeContext()));
  for (std::unique_ptr<MetricSink>& sink : sinks) metrics().AddSink(std::move(sink));
  return absl::OkStatus();
}

absl::Status Session::Restore() {
  if (!Resumes()) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(WithAllowedChanges(checkpointer_->Restore(plan_.iteration), options_.checkpoint.allow_changes));
  const bool is_trained = state().iteration == state().max_iterations;
  const bool is_done = state().finished(static_cast<int64_t>(trainer_->task().phases().size()));
  SSL_LOG(INFO) << "resuming at iteration " << state().iteration << " of " << state().max_iterations
                << (is_done      ? ": nothing is left to do"
                    : is_trained ? ": all updates are done, and what follows the last one comes again"
                                 : "");
  return absl::OkStatus();
}

absl::StatusOr<TrainOutcome> Session::Train() {
  absl::StatusOr<bool> more = Step();
  while (more.ok() && *more) more = Step();
  const absl::Status finished = Finish();
  SSL_RETURN_IF_ERROR(more.status());
  SSL_RETURN_IF_ERROR(finished);
  return trainer_->stop_reason() != kStopNone ? TrainOutcome::kStopped : TrainOutcome::kFinished;
}

absl::StatusOr<bool> Session::Step() {
  if (without_device_) return absl::FailedPreconditionError("this session was made without its device: it has no step");
  SSL_RETURN_IF_ERROR(Start());
  bool more = false;
  const absl::Status status = Guarded("step", device_, [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(more, trainer_->Step());
    return absl::OkStatus();
  });
  SSL_RETURN_IF_ERROR(Note(state().training ? "training" : "testing", status));
  return more;
}

absl::Status Session::Finish() {
  if (ended_) return failure_;
  ended_ = true;
  if (!started_ && failure_.ok()) return absl::OkStatus();  // nothing has begun
  const absl::Status status = Guarded("finishing", device_, [this] { return FinishRun(); });
  // What was being written when the run failed is part of what it leaves.
  if (!status.ok() && checkpointer_ != nullptr) checkpointer_->LetEnd();
  return Note(!status.ok() ? "finishing" : trainer_->stop_reason() != kStopNone ? "stopped" : "finished", status);
}

absl::Status Session::FinishRun() {
  SSL_RETURN_IF_ERROR(trainer_->Finish(failure_));
  return checkpointer_ != nullptr && trainer_->ended_early() ? checkpointer_->MarkFinished(trainer_->end_reason())
                                                             : absl::OkStatus();
}

absl::StatusOr<std::vector<at::Tensor>> Session::Features(const at::Tensor& images,
                                                          const std::vector<FeatureRequest>& requests) {
  if (Resumes() && !started_) {
    return absl::FailedPreconditionError(absl::StrCat("the weights of iteration ", plan_.iteration,
                                                      " are restored by Start(), expected before Features()"));
  }
  std::vector<at::Tensor> features;
  model().SetTraining(false);
  const absl::Status status = Guarded("features", device_, [&] {
    // A host's model may lie elsewhere by itself.
    features = model().Features(device_.is_cpu() ? images : images.to(device_), requests);
    return absl::OkStatus();
  });
  model().SetTraining(state().training);
  SSL_RETURN_IF_ERROR(status);
  return features;
}

}  // namespace ssl
