// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/profiler_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/device_tensors.h"
#include "ssl/core/training_pause.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/hooks/folder_in_run.h"
#include "ssl/hooks/profiler_result.h"
#include "ssl/hooks/register_component.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

namespace profiler = torch::autograd::profiler;

// Kernels and copies of a GPU are recorded by its driver's own tracing, in LibTorch's words an activity.
std::set<profiler::ActivityType> ActivitiesOf(const c10::Device& device) {
  if (!device.is_cuda()) return {profiler::ActivityType::CPU};
  return {profiler::ActivityType::CPU, profiler::ActivityType::CUDA};
}

profiler::ProfilerConfig MakeConfig(const RuntimeProfilingOptions& options) {
  return profiler::ProfilerConfig(profiler::ProfilerState::KINETO, options.record_shapes, options.record_memory);
}

// A check without the run's ranks is a world of one: what the configuration says of its ranks counts as well.
absl::StatusOr<int64_t> RanksOfRun(const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const WorldShape shape, ReadWorldShape(context.config));
  return std::max(context.communicator.size(), shape.ranks());
}

// That some are missing is no mistake: the default has a second rank.
absl::Status CheckProfiledRanks(const std::vector<int64_t>& ranks, const ConfigNode& params,
                                const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const int64_t size, RanksOfRun(context));
  if (std::any_of(ranks.begin(), ranks.end(), [size](int64_t rank) { return rank < size; })) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(params, "PROFILED_RANKS", context), " is [", absl::StrJoin(ranks, ", "),
                   "], which names no rank of this run, expected ",
                   size == 1 ? "0, its only rank" : absl::StrCat("some of its ranks, which are 0 to ", size - 1)));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeProfiler(const ProfilerOptions& options, const ConfigNode& params,
                                                   const BuildContext& context) {
  SSL_RETURN_IF_ERROR(CheckProfiledRanks(options.profiled_ranks, params, context));
  const std::string place = PlaceOf(params, "RUNTIME_PROFILING.USE_PROFILER", context);
  SSL_ASSIGN_OR_RETURN(OutputFolder folder, FolderInRun(context, place + ": hook 'profiler'", "profile"));
  // Else it is the end of the recording, hours later, that finds it missing.
  const absl::Status way = CheckWayOfTraces();
  if (!way.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": hook 'profiler' writes its traces by way of a temporary directory, and ", way.message(),
                     "; TMPDIR names another place"));
  }
  return std::make_unique<ProfilerHook>(options, context.file_system, std::move(folder));
}

}  // namespace

// The recorder is on from TurnOn on. Marks nest: a part of an update lies within it.
class ProfilerHook::Recording {
 public:
  explicit Recording(int64_t first) : first_(first) {}
  ~Recording() {
    if (on_) Stop();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Records this thread, too, for the rank of this process that has turned the recorder on.
  void Join() {
    profiler::enableProfilerInChildThread();
    on_ = true;
    is_joined_ = true;
  }

  // Not prepared any sooner: between the two calls nobody in the process can turn a recorder on, and one that is
  // prepared and never turned on stays in everybody's way.
  void TurnOn(const RuntimeProfilingOptions& options, const c10::Device& device) {
    const profiler::ProfilerConfig config = MakeConfig(options);
    const std::set<profiler::ActivityType> activities = ActivitiesOf(device);
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities, {at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE});
    on_ = true;
  }
  int64_t first() const { return first_; }
  bool is_joined() const { return is_joined_; }

  // suffix: " rank<r>" where a trace has several ranks.
  void BeginStep(int64_t iteration, const std::string& suffix) {
    EndStep();
    step_ = absl::StrCat("ProfilerStep#", iteration, suffix);
    step_mark_.emplace(at::RecordScope::USER_SCOPE);
    step_mark_->before(std::string_view(step_));
  }
  void EndStep() {
    part_mark_.reset();
    step_mark_.reset();
  }
  void BeginPart(const char* name) {
    part_mark_.reset();
    if (!step_mark_.has_value() || name == nullptr) return;
    part_mark_.emplace(at::RecordScope::USER_SCOPE);
    part_mark_->before(std::string_view(name));
  }

  // Null for one that had joined: its part is in the other's result.
  std::unique_ptr<profiler::ProfilerResult> Stop() {
    EndStep();
    on_ = false;
    if (!is_joined_) return profiler::disableProfiler();
    profiler::disableProfilerInChildThread();
    return nullptr;
  }

 private:
  const int64_t first_;  // update that is recorded, from 1
  bool on_ = false;
  bool is_joined_ = false;
  std::string step_;
  std::optional<at::RecordFunction> step_mark_;
  std::optional<at::RecordFunction> part_mark_;
};

void RuntimeProfilingOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("USE_PROFILER", &use_profiler,
                Doc("record what LibTorch runs in some iterations as a Chrome trace").MayChange());
  visitor.Field("RECORD_SHAPES", &record_shapes, Doc("with the shapes of operators' inputs (ours)").MayChange());
  visitor.Field("RECORD_MEMORY", &record_memory, Doc("with what tensors take and give back (ours)").MayChange());
}

void ProfilerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("START_ITERATION", &start_iteration,
                Doc("updates of the run before profiling starts").AtLeast(0).MayChange());
  visitor.Field("WARMUP_ITERATIONS", &warmup_iterations,
                Doc("updates from there that are not recorded").AtLeast(0).MayChange());
  visitor.Field("NUM_ITERATIONS", &num_iterations, Doc("updates after them that are").AtLeast(1).MayChange());
  visitor.Field("STOP_TRAINING_AFTER_PROFILING", &stop_training_after_profiling,
                Doc("then save and stop; the same command goes on").MayChange());
  visitor.Field("PROFILED_RANKS", &profiled_ranks, Doc("ranks that write a trace").AtLeast(0).MayChange());
  visitor.Section("RUNTIME_PROFILING", &runtime_profiling, Doc("what is recorded").MayChange());
}

ProfilerHook::ProfilerHook(const ProfilerOptions& options, FileSystem& file_system, OutputFolder folder)
    : options_(options), file_system_(file_system), folder_(std::move(folder)) {}

ProfilerHook::~ProfilerHook() = default;

std::vector<PlannedAction> ProfilerHook::Plan() const {
  // Once.
  constexpr int64_t kNeverAgain = int64_t{1} << 40;
  const int64_t first = first_recorded() + 1;
  const std::vector<int64_t>& ranks = options_.profiled_ranks;
  const std::string rank = ranks.size() == 1 ? absl::StrCat(ranks[0]) : "*";
  // The last update is that of the run where it ends before the range does.
  const char* updates = options_.num_iterations == 1 ? " update" : " updates";
  std::vector<PlannedAction> plan = {{absl::StrCat("records ", options_.num_iterations, updates, " from this one on"),
                                      {Cadence::Unit::kUpdate, kNeverAgain, first, first, false},
                                      false,
                                      absl::StrCat("profile/rank", rank, "_iterations_", first, "-*.json")}};
  const int64_t last = first + options_.num_iterations - 1;
  if (options_.stop_training_after_profiling) {
    plan.push_back({"stops the run, which saves itself", {Cadence::Unit::kUpdate, kNeverAgain, last, last, false}});
  }
  return plan;
}

absl::Status ProfilerHook::OnStart(StepContext& context) {
  const std::vector<int64_t>& ranks = options_.profiled_ranks;
  const bool is_mine = std::find(ranks.begin(), ranks.end(), context.communicator.rank()) != ranks.end();
  records_ = is_mine && context.state.iteration < end();
  const int64_t updates = context.state.max_iterations;
  if (updates > 0 && end() > updates && context.communicator.rank() == 0) {
    SSL_LOG(WARNING) << instance_name() << ": updates " << first_recorded() + 1 << " to " << end()
                     << " are to be recorded, of which the run has "
                     << (first_recorded() < updates ? absl::StrCat(updates - first_recorded()) : "none")
                     << ": it ends with " << updates << "; config.PROFILING says when it starts and for how long";
  }
  SSL_RETURN_IF_ERROR(CheckPlaces(context));
  if (records_) YieldToOtherRecorder();
  return FindCompanions(context);
}

std::string ProfilerHook::TracePath(int64_t rank, int64_t first, int64_t last) const {
  return absl::StrCat(folder_.path(), "/rank", rank, "_iterations_", first, "-", last, ".json");
}

// Else it is the end of the recording, hours later, that finds one taken. A run that ends early has another name.
absl::Status ProfilerHook::CheckPlaces(const StepContext& context) const {
  const int64_t updates = context.state.max_iterations;
  const int64_t before = std::max(first_recorded(), context.state.iteration);
  const int64_t last = updates > 0 ? std::min(end(), updates) : end();
  if (before >= last) return absl::OkStatus();
  for (const int64_t rank : options_.profiled_ranks) {
    if (rank >= context.communicator.size()) continue;
    const std::string path = TracePath(rank, before + 1, last);
    if (!file_system_.IsDirectory(path)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a trace is to be the file ", path, ", in whose place is a ", "directory: move it away"));
  }
  return absl::OkStatus();
}

absl::Status ProfilerHook::FindCompanions(StepContext& context) {
  const ProcessIdentity process = ProcessIdentity::OfThisProcess();
  at::Tensor own = at::full({2}, records_ ? 1 : 0, at::kLong);
  own[1].fill_(static_cast<int64_t>(Crc32c(process.ToText())));
  SSL_ASSIGN_OR_RETURN(const at::Tensor all, context.communicator.AllGather(own));  // [ranks, (records, process)]
  std::map<int64_t, std::vector<int64_t>> recorders;
  for (int64_t rank = 0; rank < all.size(0); ++rank) {
    if (all[rank][0].item<int64_t>() != 0) recorders[all[rank][1].item<int64_t>()].push_back(rank);
  }
  companions_ = recorders[own[1].item<int64_t>()];
  shares_ = std::any_of(recorders.begin(), recorders.end(), [](const auto& each) { return each.second.size() > 1; });
  return absl::OkStatus();
}

void ProfilerHook::YieldToOtherRecorder() {
  if (!profiler::profilerEnabled()) return;
  records_ = false;
  SSL_LOG(WARNING) << instance_name() << ": another recorder is on in this thread, so that nothing is recorded";
}

void ProfilerHook::Begin(StepContext& context, bool joins) {
  // The host may have turned its recorder on since the start: LibTorch would put ours in its place.
  YieldToOtherRecorder();
  if (!records_) return;
  auto recording = std::make_unique<Recording>(context.state.iteration + 1);
  const absl::Status turned_on = GuardTorch("turning the recorder on", [&] {
    const c10::Device device = DeviceOf(context.model);
    WaitForDevice(device);  // the updates before are not recorded
    joins ? recording->Join() : recording->TurnOn(options_.runtime_profiling, device);
    return absl::OkStatus();
  });
  records_ = turned_on.ok();
  if (records_) {
    recording_ = std::move(recording);
  } else {
    SSL_LOG(WARNING) << instance_name() << ": nothing is recorded: " << turned_on.message();
  }
}

// The recorder of a process is its first rank's. The others join once it is on; where it is not, because the host has
// one, each of them tries for itself.
absl::Status ProfilerHook::BeginOnAll(StepContext& context) {
  has_begun_ = true;
  const bool is_first = companions_.empty() || companions_[0] == context.communicator.rank();
  if (records_ && is_first) Begin(context, /*joins=*/false);
  if (!shares_) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const at::Tensor on,
                       context.communicator.AllGather(at::full({}, recording_ != nullptr ? 1 : 0, at::kLong)));
  if (!records_ || is_first) return absl::OkStatus();
  Begin(context, /*joins=*/on[companions_[0]].item<int64_t>() != 0);
  return absl::OkStatus();
}

absl::Status ProfilerHook::OnBatchStart(StepContext& context) {
  const int64_t iteration = context.state.iteration;
  const bool is_due = context.state.training && iteration >= first_recorded() && iteration < end();
  if (is_due && !has_begun_) SSL_RETURN_IF_ERROR(BeginOnAll(context));
  if (recording_ == nullptr) return absl::OkStatus();
  if (context.state.training && context.batch_in_update == 0) {
    recording_->BeginStep(iteration + 1,
                          companions_.size() > 1 ? absl::StrCat(" rank", context.communicator.rank()) : "");
  }
  BeginPart(context, "forward");
  return absl::OkStatus();
}

void ProfilerHook::BeginPart(StepContext& context, const char* name) {
  if (recording_ != nullptr && context.state.training) recording_->BeginPart(name);
}

absl::Status ProfilerHook::OnForward(StepContext& context) {
  BeginPart(context, "loss");
  return absl::OkStatus();
}

absl::Status ProfilerHook::OnLossAndMeter(StepContext& context) {
  BeginPart(context, "backward");
  return absl::OkStatus();
}

absl::Status ProfilerHook::OnBackward(StepContext& context) {
  BeginPart(context, "optimizer");
  return absl::OkStatus();
}

absl::Status ProfilerHook::OnUpdate(StepContext& context) {
  BeginPart(context, nullptr);
  return absl::OkStatus();
}

absl::Status ProfilerHook::OnStep(StepContext& context) {
  if (recording_ != nullptr) recording_->EndStep();
  if (!context.state.training || context.state.iteration != end()) return absl::OkStatus();
  // Ranks that record nothing ask and agree as well.
  if (options_.stop_training_after_profiling) context.stop.Request(kStopTerminate);
  return SaveOnAll(context);
}

absl::Status ProfilerHook::OnException(StepContext& context, const absl::Status& error) {
  run_has_failed_ = true;
  return absl::OkStatus();
}

absl::Status ProfilerHook::OnEnd(StepContext& context) { return run_has_failed_ ? Save(context) : SaveOnAll(context); }

// Whoever has joined a recorder leaves it before it is turned off.
absl::Status ProfilerHook::SaveOnAll(StepContext& context) {
  absl::Status saved;
  if (recording_ != nullptr && recording_->is_joined()) {
    saved = GuardTorch("leaving the recorder of this process", [&] { return Save(context); });
  }
  if (shares_) SSL_RETURN_IF_ERROR(context.communicator.Barrier());
  saved.Update(GuardTorch("saving a trace", [&] { return Save(context); }));
  return AgreeOnStatus(saved, "saving a trace", context.communicator);
}

absl::Status ProfilerHook::Save(StepContext& context) {
  records_ = false;
  const std::unique_ptr<Recording> recording = std::move(recording_);
  if (recording == nullptr) return absl::OkStatus();
  if (!run_has_failed_) WaitForDevice(DeviceOf(context.model));  // a kernel that runs behind the recording is not in it
  const std::unique_ptr<profiler::ProfilerResult> result = recording->Stop();
  // LibTorch keeps one handle for all threads of a recording, and so leaves what watches the first one where it is.
  if (companions_.size() > 1) at::clearThreadLocalCallbacks();
  if (result == nullptr) return absl::OkStatus();
  const int64_t last = std::max(recording->first(), context.state.iteration);
  const std::string path = TracePath(context.communicator.rank(), recording->first(), last);
  SSL_ASSIGN_OR_RETURN(const std::string trace, TraceOf(*result));
  SSL_RETURN_IF_ERROR(CreateOutputFolder(folder_, file_system_));
  SSL_RETURN_IF_ERROR(WriteFileAtomically(file_system_, path, trace));
  SSL_LOG(INFO) << instance_name() << ": wrote " << path << "; open it in https://ui.perfetto.dev"
                << (companions_.size() > 1 ? absl::StrCat("; ranks ", absl::StrJoin(companions_, ", "),
                                                          " are threads of one process, and all in it")
                                           : "");
  const std::string table = TableOf(*result);
  if (!table.empty()) {
    SSL_LOG(INFO) << instance_name() << ": updates " << recording->first() << " to " << last << ", " << table;
  }
  return absl::OkStatus();
}

absl::Status RegisterProfilerHook(Registries* registries) {
  return RegisterHook(registries,
                      {"profiler",
                       "records what LibTorch runs in some iterations as a Chrome trace, by way of "
                       "a folder of $TMPDIR, or /tmp"},
                      &MakeProfiler);
}

}  // namespace ssl
