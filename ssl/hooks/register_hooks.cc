// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/register_hooks.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/core/core_options.h"
#include "ssl/core/hook.h"
#include "ssl/core/meter.h"
#include "ssl/core/metrics.h"
#include "ssl/hooks/check_nan_hook.h"
#include "ssl/hooks/checkpoint_hook.h"
#include "ssl/hooks/configured_hooks.h"
#include "ssl/hooks/ema_hook.h"
#include "ssl/hooks/freeze_parameters_hook.h"
#include "ssl/hooks/grad_clip_hook.h"
#include "ssl/hooks/memory_summary_hook.h"
#include "ssl/hooks/model_complexity_hook.h"
#include "ssl/hooks/model_output_mask_hook.h"
#include "ssl/hooks/perf_stats_hook.h"
#include "ssl/hooks/phase_metrics_hook.h"
#include "ssl/hooks/sinks/jsonl_sink.h"
#include "ssl/hooks/sinks/tensorboard_sink.h"
#include "ssl/hooks/train_logger_hook.h"

namespace ssl {
namespace {

// Parameters of a component that has none.
struct NoOptions : public Options {
  void VisitFields(FieldVisitor& visitor) override {}
};

struct FreezeParametersOptions : public Options {
  ConfigNode entries = ConfigNode::List();
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("TEMP_FROZEN_PARAMS_ITER_MAP", &entries, Doc("[[parameter, iterations], ...]"));
  }
};

struct TensorboardSetupOptions : public Options {
  bool use_tensorboard = false;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("USE_TENSORBOARD", &use_tensorboard, Doc("write TensorBoard events to <run directory>/tb_logs"));
  }
};

struct HooksOptions : public Options {
  bool check_nan = true;
  EmaHookOptions ema_model;
  MemorySummaryOptions memory_summary;
  ModelComplexityOptions model_complexity;
  PerfStatsOptions perf_stats;
  TensorboardSetupOptions tensorboard;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("CHECK_NAN", &check_nan, Doc("stop when loss, gradients or weights are NaN or infinite").MayChange());
    visitor.Section("EMA_MODEL", &ema_model, Doc("moving averages of the model"));
    visitor.Section("MEMORY_SUMMARY", &memory_summary, Doc("memory that the run takes").MayChange());
    visitor.Section("MODEL_COMPLEXITY", &model_complexity, Doc("size of the model").MayChange());
    visitor.Section("PERF_STATS", &perf_stats, Doc("time that the parts of a step take").MayChange());
    visitor.Section("TENSORBOARD_SETUP", &tensorboard, Doc("TensorBoard").MayChange());
  }
};

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckNan(const ConfigNode& params, const BuildContext& context) {
  TrainLoggerOptions options;  // weights are looked at where a line is reported
  SSL_RETURN_IF_ERROR(ReadOptions(params, "check_nan", UnknownKeys::kError, &options));
  return std::make_unique<CheckNanHook>(options.log_frequency);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckpoint(const ConfigNode& params, const BuildContext& context) {
  CheckpointOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.CHECKPOINT", UnknownKeys::kError, &options));
  return std::make_unique<CheckpointHook>(options.epoch_frequency, options.iteration_frequency);
}

// What the hooks that measure read of the section METERS, which ssl/meters declares.
struct MeasuredOptions : public Options {
  std::vector<std::string> names;
  bool enable_training_meter = true;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("names", &names, Doc("what is measured in each phase"));
    visitor.Field("enable_training_meter", &enable_training_meter, Doc("measure in train phases, too"));
  }
};

absl::StatusOr<std::unique_ptr<Hook>> MakeEma(const ConfigNode& params, const BuildContext& context) {
  EmaHookOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.HOOKS.EMA_MODEL", UnknownKeys::kError, &options));
  MeasuredOptions measured;
  SSL_RETURN_IF_ERROR(ReadOptions(context.config.Section("METERS"), "config.METERS", UnknownKeys::kIgnore, &measured));
  std::vector<std::unique_ptr<Meter>> meters;
  if (options.enable_ema_meters) {
    for (const std::string& name : measured.names) {
      const ConfigNode& section = context.config.Section(absl::StrCat("METERS.", name));
      SSL_ASSIGN_OR_RETURN(meters.emplace_back(), context.registries.meters.Make(name, section, context));
    }
  }
  return std::make_unique<EmaHook>(options, std::move(meters), measured.enable_training_meter);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeGradClip(const ConfigNode& params, const BuildContext& context) {
  GradClipOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.MODEL.GRAD_CLIP", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(const double norm_type, ParseNormType(options.norm_type));
  return std::make_unique<GradClipHook>(norm_type, options.max_norm);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeMemorySummary(const ConfigNode& params, const BuildContext& context) {
  MemorySummaryOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.HOOKS.MEMORY_SUMMARY", UnknownKeys::kError, &options));
  return std::make_unique<MemorySummaryHook>(options);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeModelComplexity(const ConfigNode& params, const BuildContext& context) {
  ModelComplexityOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.HOOKS.MODEL_COMPLEXITY", UnknownKeys::kError, &options));
  if (options.input_shape.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        params.Find("INPUT_SHAPE")->location().ToString(), ": config.HOOKS.MODEL_COMPLEXITY.INPUT_SHAPE has ",
        options.input_shape.size(), " numbers, expected [channels, height, width]"));
  }
  return std::make_unique<ModelComplexityHook>(std::move(options.input_shape));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeModelOutputMask(const ConfigNode& params, const BuildContext& context) {
  NoOptions none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "model_output_mask", UnknownKeys::kError, &none));
  return std::make_unique<ModelOutputMaskHook>();
}

absl::StatusOr<std::unique_ptr<Hook>> MakePerfStats(const ConfigNode& params, const BuildContext& context) {
  PerfStatsOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.HOOKS.PERF_STATS", UnknownKeys::kError, &options));
  return std::make_unique<PerfStatsHook>(options);
}

absl::StatusOr<std::unique_ptr<Hook>> MakePhaseMetrics(const ConfigNode& params, const BuildContext& context) {
  NoOptions none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "phase_metrics", UnknownKeys::kError, &none));
  const std::string& directory = context.run_directory;
  return std::make_unique<PhaseMetricsHook>(context.file_system,
                                            directory.empty() ? "" : absl::StrCat(directory, "/metrics.json"));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeFreezeParameters(const ConfigNode& params, const BuildContext& context) {
  FreezeParametersOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "freeze_parameters", UnknownKeys::kError, &options));
  SSL_ASSIGN_OR_RETURN(std::vector<FrozenParameter> frozen, ParseFrozenParameters(options.entries));
  return std::make_unique<FreezeParametersHook>(std::move(frozen));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeTrainLogger(const ConfigNode& params, const BuildContext& context) {
  TrainLoggerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "train_logger", UnknownKeys::kError, &options));
  return std::make_unique<TrainLoggerHook>(options);
}

// A path inside the run directory; FailedPrecondition when the run keeps no files.
absl::StatusOr<std::string> RunPath(const BuildContext& context, absl::string_view sink, absl::string_view file) {
  if (context.run_directory.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("metric sink '", sink, "' has no place to write ", file, " to, expected a run directory"));
  }
  return absl::StrCat(context.run_directory, "/", file);
}

absl::StatusOr<std::unique_ptr<MetricSink>> MakeJsonl(const ConfigNode& params, const BuildContext& context) {
  NoOptions none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "jsonl", UnknownKeys::kError, &none));
  SSL_ASSIGN_OR_RETURN(std::string path, RunPath(context, "jsonl", "metrics.jsonl"));
  return MakeJsonlSink(context.file_system, std::move(path));
}

absl::StatusOr<std::unique_ptr<MetricSink>> MakeTensorboard(const ConfigNode& params, const BuildContext& context) {
  NoOptions none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "tensorboard", UnknownKeys::kError, &none));
  SSL_ASSIGN_OR_RETURN(std::string directory, RunPath(context, "tensorboard", "tb_logs"));
  return MakeTensorboardSink(context.file_system, std::move(directory), Clock::Real());
}

}  // namespace

absl::Status RegisterHooks(Registries* registries) {
  if (!registries->AddPackage("hooks")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(registries->hooks.Register("check_nan", &MakeCheckNan));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("checkpoint", &MakeCheckpoint));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("ema", &MakeEma));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("freeze_parameters", &MakeFreezeParameters));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("grad_clip", &MakeGradClip));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("memory_summary", &MakeMemorySummary));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("model_complexity", &MakeModelComplexity));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("model_output_mask", &MakeModelOutputMask));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("perf_stats", &MakePerfStats));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("phase_metrics", &MakePhaseMetrics));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("train_logger", &MakeTrainLogger));
  SSL_RETURN_IF_ERROR(registries->metric_sinks.Register("jsonl", &MakeJsonl));
  SSL_RETURN_IF_ERROR(registries->metric_sinks.Register("tensorboard", &MakeTensorboard));
  registries->configured_hooks = &MakeConfiguredHooks;
  registries->configured_sinks = &MakeConfiguredSinks;
  SSL_RETURN_IF_ERROR(registries->options.Add("MODEL", [] { return std::make_unique<FreezeParametersOptions>(); }));
  SSL_RETURN_IF_ERROR(registries->options.Add("MODEL.GRAD_CLIP", [] { return std::make_unique<GradClipOptions>(); }));
  return registries->options.Add("HOOKS", [] { return std::make_unique<HooksOptions>(); });
}

}  // namespace ssl
