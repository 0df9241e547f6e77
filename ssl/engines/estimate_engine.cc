// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/estimate_engine.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/hook.h"
#include "ssl/core/resume_plan.h"
#include "ssl/core/session.h"
#include "ssl/core/start_refusal.h"
#include "ssl/core/step_context.h"
#include "ssl/core/training_pause.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/preview_communicator.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/progress_line.h"

namespace ssl {
namespace {

constexpr char kPrefix[] = "estimate";
// The first steps allocate memory and choose kernels, and graph_train_step records the third.
constexpr int64_t kWarmUpSteps = 3;
constexpr int64_t kMeasuredSteps = 4;
constexpr absl::Duration kReportInterval = absl::Seconds(2);
constexpr int64_t kUpdates = kWarmUpSteps + kMeasuredSteps;

// What was measured, by the clock that Speed/ETA_seconds is told by (PerfStats::TrainingNow).
struct Measured {
  int64_t updates = 0;  // behind the warm-up, or all where there are no more
  absl::Duration time;
};

// Measures, and ends the session after enough steps.
class StepTimesHook : public Hook {
 public:
  // Both outlive the session. stop: the command's; the session has one of its own, which this hook requests.
  StepTimesHook(const StopToken& stop, Measured* measured) : stop_(stop), measured_(*measured) {}

  absl::string_view name() const override { return "step_times"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  void VisitState(StateVisitor& visitor) override {}

  absl::Status OnStart(StepContext& context) override {
    last_line_ = begin_ = context.perf_stats.TrainingNow();
    return absl::OkStatus();
  }
  absl::Status OnStep(StepContext& context) override {
    ++updates_;
    const bool warmed_up = updates_ == kWarmUpSteps && updates_ < context.state.max_iterations;
    const bool ends = updates_ >= kUpdates || updates_ == context.state.max_iterations;
    if (warmed_up || ends) WaitForDevice(context.loss.device());
    const absl::Time now = context.perf_stats.TrainingNow();
    if (warmed_up) {
      first_ = updates_;
      begin_ = now;
    }
    measured_ = {updates_ - first_, now - begin_};
    if (now - last_line_ >= kReportInterval) Report(now);
    if (stop_.requested()) {
      context.RequestStop("the estimate was stopped");
    } else if (updates_ >= kUpdates) {
      context.RequestStop("the estimate has measured enough");
    }
    return absl::OkStatus();
  }

 private:
  void Report(absl::Time now) {
    last_line_ = now;
    SSL_LOG(INFO) << "estimate: " << updates_ << " of " << kUpdates << " updates measured";
  }

  const StopToken& stop_;
  Measured& measured_;
  int64_t updates_ = 0;  // done
  int64_t first_ = 0;    // when measuring began
  absl::Time begin_;
  absl::Time last_line_;
};

std::string Counted(int64_t updates) { return absl::StrCat(updates, updates == 1 ? " update" : " updates"); }

class EstimateEngine : public Engine {
 public:
  absl::StatusOr<EngineReport> Run(EngineContext& context) override {
    Measured measured;
    SSL_ASSIGN_OR_RETURN(const int64_t done, UpdatesDone(context));
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, MakeSession(context, &measured));
    SSL_RETURN_IF_ERROR(session->Start());
    const int64_t all = session->state().max_iterations;
    if (done >= all) return NothingLeft(all);
    const int64_t updates = all - done;
    SSL_LOG(INFO) << "estimate: measuring the first " << std::min(kUpdates, all) << " of " << Counted(all)
                  << ", which leave nothing";
    SSL_RETURN_IF_ERROR(session->Train().status());
    if (context.stop.requested()) return StoppedReport(kPrefix);
    EngineReport report;
    if (measured.updates == 0) return report;
    const double seconds_per_update = absl::ToDoubleSeconds(measured.time) / static_cast<double>(measured.updates);
    const double seconds = seconds_per_update * static_cast<double>(updates);
    ConfigNode results = ConfigNode::Map();
    results.Set("updates", ConfigNode::FromInt(updates));
    results.Set("seconds_per_update", ConfigNode::FromDouble(seconds_per_update));
    results.Set("seconds", ConfigNode::FromDouble(seconds));
    context.results.Set(kPrefix, std::move(results));
    const std::string beside = done > 0 ? absl::StrCat(" beside the ", done, " that are done") : "";
    report.summary =
        absl::StrFormat("estimate: %s%s of %.3g s, about %s of training, until %s", Counted(updates), beside,
                        seconds_per_update, FormatDuration(seconds),
                        absl::FormatTime("%H:%M", absl::Now() + absl::Seconds(seconds), absl::LocalTimeZone()));
    // With what the start took; of several ranks, that of rank 0.
    const int64_t peak = ReadProcessMemory().peak_bytes;
    if (peak > 0) {
      absl::StrAppend(&report.summary, "\nmemory of this process, seen in ", Counted(std::min(kUpdates, all)), ": ",
                      FormatBytes(peak));
    }
    return report;
  }

 private:
  // Of the training in the run directory, from where it would go on. What it would be refused for is an error.
  static absl::StatusOr<int64_t> UpdatesDone(EngineContext& context) {
    int64_t done = 0;
    const auto look = [&]() -> absl::Status {
      if (context.run_directory.empty()) return absl::OkStatus();
      SSL_ASSIGN_OR_RETURN(const ResumePlan plan, CheckWholeResume(context.config, context.registries,
                                                                   context.file_system, context.communicator));
      if (!plan.removes_earlier) done = std::max<int64_t>(plan.iteration, 0);
      return plan.iteration >= 0 ? CheckGoesOnWithData(context) : absl::OkStatus();
    };
    SSL_RETURN_IF_ERROR(OnRankZero(look, "looking at the training that is there", context.communicator));
    at::Tensor shared = at::full({1}, done, at::kLong);
    SSL_RETURN_IF_ERROR(context.communicator.Broadcast(shared, 0));
    return shared.item<int64_t>();
  }

  // What only the data tells of it: how many samples there are. As rank 0, without the others.
  static absl::Status CheckGoesOnWithData(const EngineContext& context) {
    Registries registries = context.registries;
    registries.configured_hooks = nullptr;
    const std::unique_ptr<Communicator> alone = MakePreviewCommunicator(context.communicator.size());
    SessionOptions options;
    options.communicator = alone.get();
    options.file_system = &context.file_system;
    options.stop = &context.stop;
    options.only_preview = true;
    return Session::Create(context.config, registries, std::move(options)).status();
  }

  // The figures of an estimate that was made before stay: nothing was measured.
  static EngineReport NothingLeft(int64_t updates) {
    EngineReport report;
    report.summary =
        absl::StrCat("estimate: nothing is left to train, ", Counted(updates), " of ", updates, " are done");
    return report;
  }

  static absl::StatusOr<std::unique_ptr<Session>> MakeSession(EngineContext& context, Measured* measured) {
    ConfigNode config = context.config;
    config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(""));
    config.SetPath("TEST_MODEL", ConfigNode::FromBool(false));
    Registries registries = context.registries;
    registries.configured_hooks = nullptr;
    registries.configured_sinks = nullptr;
    SessionOptions options;
    options.communicator = &context.communicator;
    options.file_system = &context.file_system;
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(config, registries, std::move(options)));
    SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<StepTimesHook>(context.stop, measured)));
    return session;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeEstimateEngine(const ConfigNode& config, const BuildContext& context) {
  return std::make_unique<EstimateEngine>();
}

}  // namespace ssl
