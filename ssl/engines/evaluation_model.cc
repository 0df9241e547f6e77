// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_model.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/core_options.h"
#include "ssl/core/device_memory.h"
#include "ssl/core/device_tensors.h"
#include "ssl/core/generator_scope.h"
#include "ssl/core/model_replicas.h"
#include "ssl/core/run_device.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/checkpoint_settings.h"
#include "ssl/hooks/best_checkpoint_hook.h"
#include "ssl/hooks/checkpoint_hook.h"
#include "ssl/io/safetensors.h"

namespace ssl {
namespace {

constexpr char kRandomWeights[] = "random weights";

// `key` asks for it.
absl::Status CheckStep(const CheckpointStore& store, int64_t wanted, const std::string& key) {
  SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> iterations, store.Iterations());
  if (std::binary_search(iterations.begin(), iterations.end(), wanted)) return store.Verify(wanted).status();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", wanted, ", and there is no ", store.StepDirectory(wanted),
                   "; checkpoints: ", iterations.empty() ? "none" : absl::StrJoin(iterations, ", ")));
}

absl::Status ReadStep(const CheckpointStore& store, int64_t wanted, Model& model) {
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, store.Load(wanted, kModelFile));
  return RestoreState(model, tensors, absl::StrCat(store.StepDirectory(wanted), "/", kModelFile));
}

// NotFound means a run without checkpoints here, whose weights may come from elsewhere: not those of a step that is
// named, whose files are gone.
absl::Status OfNamedStep(const absl::Status& status, int64_t wanted, const std::string& key) {
  if (!absl::IsNotFound(status)) return status;
  return absl::DataLossError(absl::StrCat(key, " is ", wanted,
                                          ", and that checkpoint is not complete: ", status.message(),
                                          "; name another one, or none for the newest that is intact"));
}

constexpr char kBestKeeps[] = "config.HOOKS.BEST_CHECKPOINT.METRICS makes a training keep its best one";

std::string EvaluatePlace(const ConfigNode& config) {
  const ConfigNode* node = config.FindPath("CHECKPOINT.EVALUATE");
  const SourceLocation place = node != nullptr ? node->location() : SourceLocation();
  return absl::StrCat(place.ToString(), ": config.CHECKPOINT.EVALUATE");
}

// The checkpoint that CHECKPOINT.EVALUATE names.
absl::StatusOr<int64_t> NamedStep(const CheckpointStore& store, const std::string& name, const std::string& directory,
                                  const ConfigNode& config) {
  SSL_ASSIGN_OR_RETURN(const auto names, store.Names());
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, iteration] : names) known.push_back(other);
  return absl::InvalidArgumentError(absl::StrCat(
      EvaluatePlace(config), " is '", name, "', and no checkpoint in ", directory, " has that name",
      DidYouMean(name, known), "; names: ", known.empty() ? "none" : absl::StrJoin(known, ", "), "; ", kBestKeeps));
}

bool TrainsBefore(const EngineContext& context) {
  const std::vector<std::string>& engines = context.earlier_engines;
  return std::find(engines.begin(), engines.end(), "train") != engines.end();
}

// Those that a training of `config` gives to checkpoints.
std::vector<std::string> NamesOfTraining(const ConfigNode& config) {
  std::vector<std::string> names = BestCheckpointNames(config);
  const std::vector<std::string> rolling = RollingCheckpointNames(config);
  names.insert(names.end(), rolling.begin(), rolling.end());
  return names;
}

// Whether there is, or will be, a checkpoint that CHECKPOINT.EVALUATE names; a run without checkpoints may get some.
absl::Status CheckName(const CheckpointOptions& options, EngineContext& context) {
  const std::string& name = options.evaluate;
  if (name.empty()) return absl::OkStatus();
  const std::vector<std::string> to_come =
      TrainsBefore(context) ? NamesOfTraining(context.config) : std::vector<std::string>();
  if (std::find(to_come.begin(), to_come.end(), name) != to_come.end()) return absl::OkStatus();
  const std::string directory = CheckpointDirectory(context.run_directory);
  const bool goes = TrainsBefore(context) && options.overwrite_existing && !options.auto_resume;
  const bool has_run = !goes && !context.run_directory.empty() && context.file_system.IsDirectory(directory);
  if (!has_run && !TrainsBefore(context)) return absl::OkStatus();
  if (has_run) {
    const CheckpointStore store({directory, 0, ""}, context.file_system, context.communicator);
    const absl::Status named = NamedStep(store, name, directory, context.config).status();
    if (to_come.empty() || named.ok()) return named;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(EvaluatePlace(context.config), " is '", name,
                   "', and the training before gives no checkpoint that name", DidYouMean(name, to_come),
                   "; names: ", to_come.empty() ? absl::StrCat("none; ", kBestKeeps) : absl::StrJoin(to_come, ", ")));
}

// The checkpoint that the settings ask for; below 0 for the newest. A name counts before RESUME_FROM, and that one only
// without a training in the same command, which has gone on from there.
absl::StatusOr<int64_t> WantedStep(const CheckpointStore& store, const CheckpointOptions& options,
                                   const std::string& directory, EngineContext& context) {
  if (options.evaluate.empty()) return context.held_directory == nullptr ? options.resume_from : int64_t{-1};
  const absl::StatusOr<int64_t> named = context.communicator.rank() == 0
                                            ? NamedStep(store, options.evaluate, directory, context.config)
                                            : absl::StatusOr<int64_t>(0);
  SSL_RETURN_IF_ERROR(AgreeOnStatus(named.status(), "looking for a checkpoint", context.communicator));
  at::Tensor iteration = at::full({1}, *named, at::kLong);
  SSL_RETURN_IF_ERROR(context.communicator.Broadcast(iteration, 0));
  return iteration.item<int64_t>();
}

absl::StatusOr<int64_t> RestoreStep(const CheckpointStore& store, int64_t wanted, const std::string& key,
                                    EngineContext& context, Model& model) {
  const auto check = [&] { return OfNamedStep(CheckStep(store, wanted, key), wanted, key); };
  SSL_RETURN_IF_ERROR(OnRankZero(check, "looking for a checkpoint", context.communicator));
  const auto read = [&] { return OfNamedStep(ReadStep(store, wanted, model), wanted, key); };
  SSL_RETURN_IF_ERROR(AgreeOnWork(read, "reading a checkpoint", context.communicator));
  return wanted;
}

// A name may move on while its checkpoint is read, which may go then: the one that has it now is meant.
absl::StatusOr<int64_t> RestoreWanted(const CheckpointStore& store, int64_t wanted, const CheckpointOptions& options,
                                      const std::string& directory, EngineContext& context, Model& model) {
  const std::string key = absl::StrCat("config.CHECKPOINT.", options.evaluate.empty() ? "RESUME_FROM" : "EVALUATE");
  while (true) {
    const absl::StatusOr<int64_t> restored = RestoreStep(store, wanted, key, context, model);
    if (restored.ok() || options.evaluate.empty()) return restored;  // an error is one of all ranks
    SSL_ASSIGN_OR_RETURN(const int64_t now, WantedStep(store, options, directory, context));
    if (now == wanted) return restored;
    wanted = now;
  }
}

void WarnOfChanges(const CheckpointStore& store, int64_t iteration, const EngineContext& context) {
  if (context.communicator.rank() != 0) return;
  const std::string origin = absl::StrCat(store.StepDirectory(iteration), "/", kConfigFile);
  // A training beside this process may have removed the checkpoint by now. Its weights are read; this is advice.
  const absl::StatusOr<std::string> json = store.ReadConfig(iteration);
  if (!json.ok()) return;
  const absl::StatusOr<std::vector<std::string>> changes =
      ChangesSinceTraining(context.config, context.registries.options, *json, origin);
  if (!changes.ok()) {
    SSL_LOG(WARNING) << "evaluation: settings are not compared with those of the training: "
                     << changes.status().message();
    return;
  }
  if (changes->empty()) return;
  SSL_LOG(WARNING) << "evaluation: not with the settings of the training in " << origin << ":\n  "
                   << absl::StrJoin(*changes, "\n  ") << "\nits own are in " << context.run_directory
                   << "/train_config.yaml";
}

// The checkpoint that the settings ask for, or else the newest; NotFound when there is none. Of a command that trains
// as well, what it has just saved is meant.
absl::Status RestoreCheckpoint(EngineContext& context, const CheckpointOptions& options, EvaluationModel* network) {
  const std::string directory = CheckpointDirectory(context.run_directory);
  if (context.run_directory.empty()) return absl::NotFoundError("no run directory");
  const CheckpointStore store({directory, 0, ""}, context.file_system, context.communicator);
  SSL_ASSIGN_OR_RETURN(const int64_t wanted, WantedStep(store, options, directory, context));
  const absl::StatusOr<int64_t> iteration =
      wanted < 0 ? RestoreModel(directory, context.file_system, context.communicator, *network->model)
                 : RestoreWanted(store, wanted, options, directory, context, *network->model);
  if (absl::IsInvalidArgument(iteration.status()) && absl::StrContains(iteration.status().message(), kModelFile)) {
    return absl::InvalidArgumentError(absl::StrCat(
        iteration.status().message(), "; evaluate with the settings of the training: --config=", context.run_directory,
        "/train_config.yaml"));
  }
  SSL_RETURN_IF_ERROR(iteration.status());
  WarnOfChanges(store, *iteration, context);
  network->weights = absl::StrCat("checkpoint of iteration ", *iteration);
  network->checkpoint = store.StepDirectory(*iteration);
  network->iteration = *iteration;
  return absl::OkStatus();
}

// "" when none is named.
std::string ParamsFile(const BuildContext& build) {
  const ConfigNode* file = build.config.Section("MODEL.WEIGHTS_INIT").Find("PARAMS_FILE");
  return file == nullptr || build.registries.initialize_weights == nullptr ? "" : file->text();
}

// Also says what the weights are.
absl::Status Fill(EvaluationModel* network, EvaluationWeights weights, const CheckpointOptions& options,
                  EngineContext& context, const BuildContext& build) {
  network->weights = kRandomWeights;
  if (weights == EvaluationWeights::kInitial) return absl::OkStatus();
  const absl::Status restored = RestoreCheckpoint(context, options, network);
  if (!absl::IsNotFound(restored)) return restored;
  const std::string file = ParamsFile(build);
  if (!file.empty()) {
    network->weights = file;
    const auto load = [&] { return build.registries.initialize_weights(*network->model, build); };
    SSL_RETURN_IF_ERROR(AgreeOnWork(load, "loading weights", context.communicator));
    // A run that saves meanwhile may give each rank another checkpoint.
    return CopyFromRankZero(*network->model, context.communicator);
  }
  const absl::Status none = absl::NotFoundError(
      absl::StrCat("no trained weights: neither ", CheckpointDirectory(context.run_directory),
                   " nor config.MODEL.WEIGHTS_INIT.PARAMS_FILE; train first (engine_name=train, or [train, ...]), or "
                   "name the run with config.CHECKPOINT.DIR, or a file of weights with PARAMS_FILE"));
  return AgreeOnStatus(none, "looking for weights", context.communicator);  // all have none: one says so
}

absl::StatusOr<EvaluationModel> BuildModel(EngineContext& context, EvaluationWeights weights) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  const BuildContext build = MakeBuildContext(context, task.run.seed);
  EvaluationModel result;
  SSL_RETURN_IF_ERROR(GuardTorch("building the model", [&]() -> absl::Status {
    const GeneratorScope generator;
    SeedForBuilding(task.run.seed, /*rank=*/0);
    SSL_ASSIGN_OR_RETURN(result.model,
                         context.registries.models.Make(task.model_name, context.config.Section("MODEL"), build));
    SSL_RETURN_IF_ERROR(Fill(&result, weights, task.checkpoint, context, build));
    result.model->SetTraining(false);
    return absl::OkStatus();
  }));
  return result;
}

}  // namespace

absl::StatusOr<EvaluationModel> MakeEvaluationModel(EngineContext& context, EvaluationWeights weights) {
  SSL_ASSIGN_OR_RETURN(EvaluationModel result, BuildModel(context, weights));
  SSL_LOG(INFO) << "evaluating the network with: " << result.weights;
  return result;
}

absl::StatusOr<EvaluationModel> MakeModelToCheck(EngineContext& context) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  const auto look = [&] { return CheckName(task.checkpoint, context); };
  SSL_RETURN_IF_ERROR(OnRankZero(look, "looking for a checkpoint", context.communicator));
  return BuildModel(context, EvaluationWeights::kInitial);
}

absl::Status MoveToRunDevice(EngineContext& context, EvaluationModel* network) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  SSL_ASSIGN_OR_RETURN(const c10::Device device, RunDevice(task.machine, context.config, context.communicator));
  if (device.is_cpu()) return absl::OkStatus();  // a host's model may lie elsewhere by itself
  const absl::Status moved = GuardTorch("moving the model", [&] {
    MoveState(*network->model, device);
    return absl::OkStatus();
  });
  return WithMemoryAdvice(moved, device, MemoryUse::kEvaluation);
}

}  // namespace ssl
