// SPDX-License-Identifier: Apache-2.0
//
// Records what LibTorch runs in some iterations, as a Chrome trace: open the file in https://ui.perfetto.dev or in
// chrome://tracing. VISSL's section PROFILING.
//
// After START_ITERATION updates of the whole run, WARMUP_ITERATIONS are not recorded and the next NUM_ITERATIONS are:
// each operator of the training thread with its times, on a GPU each kernel and copy as well, each update as
// "ProfilerStep#<iteration>", and in it the parts "forward", "loss", "backward" and "optimizer" as the events of hooks
// divide them. Updates have the numbers of the log, from 1. Test phases between are recorded as well. The file is <run
// directory>/profile/rank<r>_iterations_<first>-<last>.json; it appears when it is whole. LibTorch has one trace at a
// time for a process: that of the first of several virtual ranks in one holds the others as well, each as a thread of
// its own, with the rank in the names of its updates, "ProfilerStep#<iteration> rank<r>". LibTorch writes it into a
// private folder of $TMPDIR, or /tmp, first, which is removed. A run that ends before the last of them leaves what it
// has; a resumed run records what is left of the range, in a file of its own.
//
// The log has a table of the ten kernels that took most of a GPU's time, or of the ten operators on the CPU
// (profile_table.h). On a GPU the recording begins and ends with a wait for the device.
//
// Steps that are recorded are slower; otherwise the hook costs a comparison. LibTorch has one recorder for each thread:
// when the host uses it as the run starts, or when the recording is to begin, the hook warns and records nothing. Stage
// kTiming, so that the other hooks are in the trace.
#ifndef SSL_HOOKS_PROFILER_HOOK_H_
#define SSL_HOOKS_PROFILER_HOOK_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// PROFILING.RUNTIME_PROFILING.
struct RuntimeProfilingOptions : public Options {
  bool use_profiler = false;
  bool record_shapes = false;
  bool record_memory = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// The section PROFILING.
struct ProfilerOptions : public OncePerRunOptions {
  int64_t start_iteration = 0;
  int64_t warmup_iterations = 0;
  int64_t num_iterations = 10;
  bool stop_training_after_profiling = false;
  std::vector<int64_t> profiled_ranks = {0, 1};
  RuntimeProfilingOptions runtime_profiling;

  absl::string_view section() const override { return "PROFILING"; }
  bool enabled() const override { return runtime_profiling.use_profiler; }
  std::vector<std::string> leaves() const override { return {"profile/rank*"}; }
  void VisitFields(FieldVisitor& visitor) override;
};

class ProfilerHook : public Hook {
 public:
  // folder: where traces go; made when there is one.
  ProfilerHook(const ProfilerOptions& options, FileSystem& file_system, OutputFolder folder);
  ~ProfilerHook() override;

  absl::string_view name() const override { return "profiler"; }
  HookStage stage() const override { return HookStage::kTiming; }
  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStart(StepContext& context) override;
  absl::Status OnBatchStart(StepContext& context) override;
  absl::Status OnForward(StepContext& context) override;
  absl::Status OnLossAndMeter(StepContext& context) override;
  absl::Status OnBackward(StepContext& context) override;
  absl::Status OnUpdate(StepContext& context) override;
  absl::Status OnStep(StepContext& context) override;
  absl::Status OnEnd(StepContext& context) override;
  absl::Status OnException(StepContext& context, const absl::Status& error) override;

 private:
  class Recording;

  // More updates than a run has, of which a few can be added up.
  static int64_t Bounded(int64_t updates) { return std::min(updates, int64_t{1} << 40); }
  int64_t first_recorded() const { return Bounded(options_.start_iteration) + Bounded(options_.warmup_iterations); }
  int64_t end() const { return first_recorded() + Bounded(options_.num_iterations); }
  // joins: the recorder that another rank of this process has turned on.
  void Begin(StepContext& context, bool joins);
  std::string TracePath(int64_t rank, int64_t first, int64_t last) const;
  // Equal on all ranks, which look at the places of all.
  absl::Status CheckPlaces(const StepContext& context) const;
  // Gives up, with a warning, when somebody else records in this thread.
  void YieldToOtherRecorder();
  // Sets companions_. Collective.
  absl::Status FindCompanions(StepContext& context);
  // Begins, or joins the recording of the first rank of this process. Collective where a process has several.
  absl::Status BeginOnAll(StepContext& context);
  absl::Status Save(StepContext& context);
  // The error of one rank is that of all. Collective.
  absl::Status SaveOnAll(StepContext& context);
  void BeginPart(StepContext& context, const char* name);

  const ProfilerOptions options_;
  FileSystem& file_system_;
  const OutputFolder folder_;
  bool records_ = false;                  // this rank does, and the range is not over
  bool has_begun_ = false;                // to record, or would have, if this rank recorded; equal on all ranks
  bool shares_ = false;                   // some process has several ranks that record; equal on all ranks
  std::vector<int64_t> companions_;       // the ranks of this process that record, ascending
  bool run_has_failed_ = false;           // other ranks may be gone
  std::unique_ptr<Recording> recording_;  // null outside of the range
};

absl::Status RegisterProfilerHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_PROFILER_HOOK_H_
