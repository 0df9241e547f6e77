// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_model.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/core_options.h"
#include "ssl/core/generator_scope.h"

namespace ssl {
namespace {

constexpr char kRandomWeights[] = "random weights";

// NotFound when there is none.
absl::Status RestoreCheckpoint(EngineContext& context, EvaluationModel* network) {
  const std::string directory = CheckpointDirectory(context.run_directory);
  if (context.run_directory.empty()) return absl::NotFoundError("no run directory");
  const absl::StatusOr<int64_t> iteration =
      RestoreModel(directory, context.file_system, context.communicator, *network->model);
  if (absl::IsInvalidArgument(iteration.status())) {
    return absl::InvalidArgumentError(absl::StrCat(iteration.status().message(),
                                                   "; evaluate with the settings of the training: --config=",
                                                   context.run_directory, "/train_config.yaml"));
  }
  SSL_RETURN_IF_ERROR(iteration.status());
  const CheckpointStore store({directory, 0, ""}, context.file_system, context.communicator);
  network->weights = absl::StrCat("checkpoint of iteration ", *iteration);
  network->checkpoint = store.StepDirectory(*iteration);
  return absl::OkStatus();
}

// "" when none is named.
std::string ParamsFile(const BuildContext& build) {
  const ConfigNode* file = build.config.Section("MODEL.WEIGHTS_INIT").Find("PARAMS_FILE");
  return file == nullptr || build.registries.initialize_weights == nullptr ? "" : file->text();
}

// Also says what the weights are.
absl::Status Fill(EvaluationModel* network, EvaluationWeights weights, EngineContext& context,
                  const BuildContext& build) {
  network->weights = kRandomWeights;
  if (weights == EvaluationWeights::kInitial) return absl::OkStatus();
  const absl::Status restored = RestoreCheckpoint(context, network);
  if (!absl::IsNotFound(restored)) return restored;
  const std::string file = ParamsFile(build);
  if (!file.empty()) {
    network->weights = file;
    return build.registries.initialize_weights(*network->model, build);
  }
  const std::string problem = absl::StrCat("no trained weights: neither ", CheckpointDirectory(context.run_directory),
                                           " nor config.MODEL.WEIGHTS_INIT.PARAMS_FILE");
  if (weights == EvaluationWeights::kTrained) {
    return absl::NotFoundError(absl::StrCat(
        problem,
        "; train first (engine_name=train, or [train, ...]), or name the run with config.CHECKPOINT.DIR, or a "
        "file of weights with PARAMS_FILE"));
  }
  SSL_LOG(WARNING) << problem << "; the network has " << kRandomWeights;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EvaluationModel> MakeEvaluationModel(EngineContext& context, EvaluationWeights weights) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  const BuildContext build = MakeBuildContext(context, task.run.seed);
  EvaluationModel result;
  SSL_RETURN_IF_ERROR(GuardTorch("building the model", [&]() -> absl::Status {
    const GeneratorScope generator;
    SeedForBuilding(task.run.seed, /*rank=*/0);
    SSL_ASSIGN_OR_RETURN(result.model,
                         context.registries.models.Make(task.model_name, context.config.Section("MODEL"), build));
    SSL_RETURN_IF_ERROR(Fill(&result, weights, context, build));
    result.model->SetTraining(false);
    return absl::OkStatus();
  }));
  SSL_LOG(INFO) << "evaluating the network with: " << result.weights;
  return result;
}

}  // namespace ssl
