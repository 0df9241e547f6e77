// SPDX-License-Identifier: Apache-2.0
//
// The network that an engine evaluates: built from the configuration, filled with weights, in evaluation mode.
#ifndef SSL_ENGINES_EVALUATION_MODEL_H_
#define SSL_ENGINES_EVALUATION_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/engines/engine.h"

namespace ssl {

enum class EvaluationWeights {
  kInitial,  // random, as a training run with this configuration starts
  kTrained,  // an error when there are none
};

struct EvaluationModel {
  std::unique_ptr<Model> model;
  std::string weights;     // for people: "checkpoint of iteration 120", "model.pth", "random weights"
  std::string checkpoint;  // the directory of the run's checkpoint that the weights are from; "" for others
  int64_t iteration = -1;  // of that checkpoint
};

// Trained weights are those of the run directory's newest checkpoint, or of the one that CHECKPOINT.EVALUATE names, or
// CHECKPOINT.RESUME_FROM (InvalidArgument when there is none, DataLoss when it is not intact: no other weights take its
// place; RESUME_FROM means the newest in a command that trains); without a checkpoint, those that
// MODEL.WEIGHTS_INIT.PARAMS_FILE names; NotFound without either. Where the settings are not those of the checkpoint, a
// warning names them (checkpoint_settings.h). Seeds LibTorch's generator from SEED_VALUE, so that the random weights
// are those that training starts with. DataLoss names the first tensor that is not finite. LibTorch's exceptions become
// a Status. Collective.
absl::StatusOr<EvaluationModel> MakeEvaluationModel(EngineContext& context, EvaluationWeights weights);

// For Engine::Check: the network with random weights, in the place of the one that will be evaluated. InvalidArgument
// for a CHECKPOINT.EVALUATE that no checkpoint has and that no training before in the command will give one.
// Collective.
absl::StatusOr<EvaluationModel> MakeModelToCheck(EngineContext& context);

// To the device that MACHINE.DEVICE names for this process, for an engine that computes with it. LibTorch's exceptions
// become a Status, which says what to lower where memory of that device is exhausted. Collective.
absl::Status MoveToRunDevice(EngineContext& context, EvaluationModel* network);

}  // namespace ssl

#endif  // SSL_ENGINES_EVALUATION_MODEL_H_
