// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/rank_engines.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/check/message_places.h"
#include "ssl/check/named_components.h"
#include "ssl/core/algorithm_scope.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/core_options.h"
#include "ssl/core/run_device.h"
#include "ssl/core/run_progress.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/engines/engine.h"
#include "ssl/tools/crash_report.h"
#include "ssl/tools/exit_codes.h"
#include "ssl/tools/failure_report.h"
#include "ssl/tools/signals.h"

namespace ssl {
namespace {

struct NamedEngine {
  std::string name;
  std::unique_ptr<Engine> engine;
};

absl::StatusOr<std::vector<NamedEngine>> MakeEngines(const ConfigNode& root, const BuildContext& context) {
  std::vector<NamedEngine> engines;
  for (const std::string& name : EngineNames(root)) {
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                         context.registries.engines.Make(name, context.config, context));
    engines.push_back({name, std::move(engine)});
  }
  return engines;
}

// How a rank has ended.
struct RankEnd {
  absl::Status status = absl::AbortedError("this rank did not begin");
  bool finished = false;                // without an error: else it was stopped
  std::optional<FailureSource> source;  // of an error in an engine
  RunProgress progress;
};

// One rank on its way through the engines.
class RankEngines {
 public:
  // speaks: for its process, to signal handlers and when the training begins.
  RankEngines(const EngineRun& run, int64_t seed, bool speaks, Communicator& communicator)
      : run_(run),
        seed_(seed),
        config_(*run.root.Find("config")),
        speaks_(speaks),
        communicator_(communicator),
        context_{config_,
                 run.registries,
                 communicator,
                 run.stop,
                 run.file_system,
                 run.directory,
                 communicator.rank() == 0 ? run.record.results() : results_of_no_file_} {
    context_.keeps_results = run.record.is_writable();
    context_.held_directory = run.record.held();
    context_.progress = &progress_;
    context_.on_training_begins = [this] {
      return AgreeOnStatus(speaks_ ? run_.record.Begin() : absl::OkStatus(), "beginning the run's files",
                           communicator_);
    };
  }

  RankEnd Run() {
    RankEnd end;
    const absl::StatusOr<bool> finished = RunAll();
    end.status = finished.status();
    end.finished = finished.value_or(false);
    end.source = failed_;
    end.progress = progress_;
    return end;
  }

 private:
  absl::StatusOr<bool> RunAll() {
    SSL_ASSIGN_OR_RETURN(const std::vector<NamedEngine> engines,
                         MakeEngines(run_.root, MakeBuildContext(context_, seed_)));
    SSL_ASSIGN_OR_RETURN(bool goes_on, CheckOthers(engines));
    for (size_t i = 0; i < engines.size() && goes_on; ++i) {
      SSL_ASSIGN_OR_RETURN(goes_on, RunOne(engines[i]));
    }
    return goes_on;
  }

  // What an evaluation will find wrong with its data or layers is not worth a training before it. The first engine
  // finds it by itself.
  absl::StatusOr<bool> CheckOthers(const std::vector<NamedEngine>& engines) {
    EngineContext context = context_;
    for (size_t i = 1; i < engines.size(); ++i) {
      context.earlier_engines.push_back(engines[i - 1].name);
      SSL_ASSIGN_OR_RETURN(const bool went_on,
                           Watched(engines[i], "building", [&] { return engines[i].engine->Check(context); }));
      if (!went_on) return false;
    }
    return true;
  }

  // True when its work is done, false when it was stopped.
  absl::StatusOr<bool> RunOne(const NamedEngine& entry) {
    const ConfigNode earlier = context_.results;
    EngineReport report;
    const char* phase = entry.engine->trains() ? nullptr : "evaluating";
    SSL_ASSIGN_OR_RETURN(
        const bool went_on, Watched(entry, phase, [&]() -> absl::Status {
          SSL_ASSIGN_OR_RETURN(report, entry.engine->Run(context_));
          // What was to be saved is: a second signal would end it as if it were not.
          if (speaks_ && report.stopped) KeepExitCode(kExitStopped);
          // A signal that came to one rank first may have found the others done.
          SSL_ASSIGN_OR_RETURN(report.stopped, AnyRank(report.stopped, communicator_));
          // An evaluation that was stopped has no results: the file stays as it is.
          const bool has_none = report.stopped && context_.results == earlier;
          SSL_RETURN_IF_ERROR(AgreeOnStatus(Publish(report, !has_none), "saving results", communicator_));
          return report.verdict;
        }));
    return went_on && !report.stopped;
  }

  absl::Status Publish(const EngineReport& report, bool has_results) {
    if (communicator_.rank() != 0) return absl::OkStatus();
    run_.out << absl::StripSuffix(report.summary, "\n") << "\n" << std::flush;
    return has_results ? run_.record.SaveResults() : absl::OkStatus();
  }

  // Does `work` for one engine, and notes whose failure it is. False when it was stopped where there was nothing to
  // save.
  absl::StatusOr<bool> Watched(const NamedEngine& entry, const char* phase, absl::FunctionRef<absl::Status()> work) {
    const std::string training = entry.engine->TrainingDirectory(context_.run_directory);
    // An evaluation after a training says where that one has ended.
    RunProgress& reached = reached_[training];
    progress_ = reached;
    progress_.rank = communicator_.rank();
    progress_.phase = phase != nullptr ? phase : RunProgress().phase;
    const FailureSource source{entry.name, CheckpointDirectory(training), communicator_.size()};
    absl::Status status;
    {
      std::optional<CrashReportScope> crash;
      if (speaks_)
        crash.emplace(run_.record.failure_file(), KnownFields(source, progress_), source.checkpoints, progress_);
      status = GuardTorch(absl::StrCat("engine ", entry.name), work);
    }
    reached = progress_;
    if (status.ok()) return true;
    // A stop that was seen where there is nothing to save, such as in a scan of the data, here or by another rank.
    if (IsStopOfAnotherRank(status) || (absl::IsCancelled(status) && run_.stop.requested())) {
      SSL_LOG(INFO) << "stopped: " << status.message();
      return false;
    }
    failed_ = source;
    return status;
  }

  const EngineRun& run_;
  const int64_t seed_;
  const ConfigNode& config_;
  const bool speaks_;
  Communicator& communicator_;
  ConfigNode results_of_no_file_ = ConfigNode::Map();
  RunProgress progress_;
  std::map<std::string, RunProgress> reached_;  // by the directory of the training
  std::optional<FailureSource> failed_;
  EngineContext context_;
};

// LibTorch's number of threads, until the end of the scope.
class ComputeThreadsScope {
 public:
  explicit ComputeThreadsScope(int64_t threads) : earlier_(at::get_num_threads()) {
    at::set_num_threads(static_cast<int>(threads));
  }
  ~ComputeThreadsScope() { at::set_num_threads(earlier_); }
  ComputeThreadsScope(const ComputeThreadsScope&) = delete;
  ComputeThreadsScope& operator=(const ComputeThreadsScope&) = delete;

 private:
  const int earlier_;
};

void LogComputeThreads(const Communicator& processes) {
  if (processes.rank() != 0 || at::get_num_threads() == 1) return;
  SSL_LOG(INFO) << "computing with " << at::get_num_threads()
                << " threads; one that is free takes over from one whose core another program uses";
}

bool IsOfAnotherRank(const RankEnd& end) { return ExitCodeOf(end.status) == kExitPeer; }

// The end of the process's ranks that tells most: an error of a rank's own, then a stop that perhaps only one has
// seen, then what others say of those two.
const RankEnd& DecidingEnd(const std::vector<RankEnd>& ends) {
  const auto weight = [](const RankEnd& end) {
    if (end.status.ok()) return end.finished ? 0 : 2;
    return IsOfAnotherRank(end) ? 1 : 3;
  };
  return *std::max_element(ends.begin(), ends.end(),
                           [&](const RankEnd& left, const RankEnd& right) { return weight(left) < weight(right); });
}

absl::StatusOr<bool> Concluded(const RankEnd& end, const EngineRun& run) {
  if (end.status.ok()) return end.finished;
  absl::Status status = WithPlaces(end.status, run.root);
  if (end.source.has_value()) run.record.WriteFailure(status, *end.source, end.progress);
  return status;
}

}  // namespace

absl::StatusOr<bool> TrainsInRunDirectory(const ConfigNode& root, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions options, ReadTaskOptions(context.config));
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedEngine> engines, MakeEngines(root, context));
  bool trains = false;
  for (const NamedEngine& entry : engines) {
    if (entry.engine->uses_device()) {
      SSL_RETURN_IF_ERROR(CheckDeviceIsBuilt(options.machine, context.config));
      SSL_RETURN_IF_ERROR(CheckCublasWorkspace(options, context.config));
    }
    trains |= entry.engine->trains();
  }
  return trains;
}

absl::StatusOr<bool> RunEnginesOfRanks(const EngineRun& run, const WorldOptions& world, Communicator& processes) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions options, ReadTaskOptions(*run.root.Find("config")));
  const int64_t seed = options.run.seed;
  std::optional<AlgorithmScope> algorithms;
  if (options.machine.device != "cpu") algorithms.emplace(options.reproducibility.deterministic_convolutions);
  std::optional<IeeeConvolutionScope> convolutions;
  if (options.reproducibility.ieee_convolutions) convolutions.emplace();
  if (world.virtual_ranks == 0) {
    LogComputeThreads(processes);
    return Concluded(RankEngines(run, seed, /*speaks=*/true, processes).Run(), run);
  }
  const ComputeThreadsScope threads(world.threads_per_virtual_rank);
  const int64_t ranks_here = world.virtual_ranks / processes.size();
  std::vector<RankEnd> ends(ranks_here);
  const absl::Status status = VirtualWorld(world.virtual_ranks, processes).Run([&](Communicator& communicator) {
    RankEnd& end = ends[communicator.rank() % ranks_here];
    end = RankEngines(run, seed, /*speaks=*/communicator.rank() % ranks_here == 0, communicator).Run();
    return end.status;
  });
  // None has begun where the world could not be made, or a thread of it.
  if (ends.empty()) return status;
  RankEnd deciding = DecidingEnd(ends);
  if (!IsOfAnotherRank(deciding)) {
    const absl::StatusOr<bool> finished = Concluded(deciding, run);
    if (finished.ok()) return finished;
    return Annotate(finished.status(),
                    absl::StrCat("virtual rank ", deciding.progress.rank, " of ", world.virtual_ranks));
  }
  // Of a rank that the world could not begin, the others only know that it is gone.
  const bool is_of_the_world = ExitCodeOf(status) != kExitPeer || !deciding.source.has_value();
  if (!status.ok() && is_of_the_world) deciding.status = status;
  return Concluded(deciding, run);
}

}  // namespace ssl
