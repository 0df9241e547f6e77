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
#include "ssl/core/hook.h"
#include "ssl/core/metrics.h"
#include "ssl/hooks/check_nan_hook.h"
#include "ssl/hooks/checkpoint_hook.h"
#include "ssl/hooks/configured_hooks.h"
#include "ssl/hooks/freeze_parameters_hook.h"
#include "ssl/hooks/sinks/jsonl_sink.h"
#include "ssl/hooks/sinks/tensorboard_sink.h"
#include "ssl/hooks/train_logger_hook.h"
#include "ssl/io/file_system.h"

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
  TensorboardSetupOptions tensorboard;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("CHECK_NAN", &check_nan, Doc("stop when the loss is NaN or infinite"));
    visitor.Section("TENSORBOARD_SETUP", &tensorboard, Doc("TensorBoard"));
  }
};

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckNan(const ConfigNode& params, const BuildContext& context) {
  NoOptions none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "check_nan", UnknownKeys::kError, &none));
  return std::make_unique<CheckNanHook>();
}

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckpoint(const ConfigNode& params, const BuildContext& context) {
  CheckpointHookOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "checkpoint", UnknownKeys::kError, &options));
  return std::make_unique<CheckpointHook>(options);
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
  return MakeJsonlSink(PosixFileSystem(), std::move(path));
}

absl::StatusOr<std::unique_ptr<MetricSink>> MakeTensorboard(const ConfigNode& params, const BuildContext& context) {
  NoOptions none;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "tensorboard", UnknownKeys::kError, &none));
  SSL_ASSIGN_OR_RETURN(std::string directory, RunPath(context, "tensorboard", "tb_logs"));
  return MakeTensorboardSink(PosixFileSystem(), std::move(directory), Clock::Real());
}

}  // namespace

absl::Status RegisterHooks(Registries* registries) {
  if (!registries->AddPackage("hooks")) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(registries->hooks.Register("check_nan", &MakeCheckNan));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("checkpoint", &MakeCheckpoint));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("freeze_parameters", &MakeFreezeParameters));
  SSL_RETURN_IF_ERROR(registries->hooks.Register("train_logger", &MakeTrainLogger));
  SSL_RETURN_IF_ERROR(registries->metric_sinks.Register("jsonl", &MakeJsonl));
  SSL_RETURN_IF_ERROR(registries->metric_sinks.Register("tensorboard", &MakeTensorboard));
  registries->configured_hooks = &MakeConfiguredHooks;
  registries->configured_sinks = &MakeConfiguredSinks;
  SSL_RETURN_IF_ERROR(registries->options.Add("MODEL", [] { return std::make_unique<FreezeParametersOptions>(); }));
  return registries->options.Add("HOOKS", [] { return std::make_unique<HooksOptions>(); });
}

}  // namespace ssl
