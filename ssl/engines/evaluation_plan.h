// SPDX-License-Identifier: Apache-2.0
//
// What an evaluation does where its configuration says nothing. The configuration of a pre-training run often has no
// DATA.TEST, or one without transforms; the evaluation then follows from DATA.TRAIN:
//
//   test set    the part "test" of a data set that has parts; else the folder "val" or "test" beside a training folder
//               of the name "train" or "training"; else a tenth of each class, which DATA.TRAIN then lacks, whatever
//               its DATA_LIMIT; none with DATA.TRAIN.HOLD_OUT_FRACTION 0. Of several sources: the parts "test" of
//               those that have some; the folders beside all
//   transforms  resize and centre crop of the size of the largest training crop, then the ToTensor and Normalize of
//               training, or what makes tensors there in their place
//   reading     of a test set with transforms of training: as that of training (kReadingKeys, images_of_run.h)
//
// A key of DATA.TEST that somebody has set stays as it is, be it to its default. Of one with all keys, as a run's own
// train_config.yaml, those count that are not their defaults, and what is set beside it. A configuration with
// DATA.TEST.DATA_SOURCES and DATA.TEST.TRANSFORMS, as all of VISSL's evaluations have, is taken as it is.
//
// Where a run lies in the run directory, the transforms and the reading of training are that run's (images_of_run.h),
// whichever images the evaluation is of.
#ifndef SSL_ENGINES_EVALUATION_PLAN_H_
#define SSL_ENGINES_EVALUATION_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/recorded_run.h"
#include "ssl/engines/engine.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct EvaluationPlan {
  ConfigNode config;                 // complete
  std::vector<std::string> choices;  // for people: what was chosen, and the keys that say otherwise
};

// Whether the user described the evaluation: DATA.TEST.TRANSFORMS has entries.
bool DescribesEvaluation(const ConfigNode& config);

// config: the resolved tree; defaults: OptionCatalog::Defaults(); run: the one whose network is evaluated, nullptr for
// one whose settings are those of `config`. Looks for folders, reads no images.
EvaluationPlan PlanEvaluation(const ConfigNode& config, const ConfigNode& defaults, FileSystem& file_system,
                              const RecordedRun* run = nullptr);

// Of an evaluation that was stopped: it has no results.
EngineReport StoppedReport(const std::string& engine);

// Plans, logs the choices, and calls `run` with a context whose configuration is complete. All ranks plan by the run
// that rank 0 finds: a training beside this command may save its first checkpoint meanwhile. Collective. Cancelled
// becomes the StoppedReport of `engine`. The results that `run` leaves under the key `engine` get the transforms that
// images went through, as a configuration has them, "transforms", and which data they are of, "data.train" and
// "data.test".
absl::StatusOr<EngineReport> WithEvaluationPlan(const std::string& engine, EngineContext& context,
                                                absl::FunctionRef<absl::StatusOr<EngineReport>(EngineContext&)> run);

// Plans without a word, and calls `check` with a context whose configuration is complete. Not collective: each rank
// that calls it plans by the run that it finds.
absl::Status CheckWithEvaluationPlan(EngineContext& context, absl::FunctionRef<absl::Status(EngineContext&)> check);

// `context` with another configuration, which outlives it.
EngineContext WithConfig(const ConfigNode& config, const EngineContext& context);

// What figures are of: a run may be trained further after its evaluation.
struct EvaluatedWeights {
  std::string description;  // "checkpoint of iteration 120", "model.pth"
  int64_t iteration = -1;   // of the checkpoint; below 0 for others
};

// Puts `findings`, a map, under the key `engine` of `results`, one by one, with "weights" and, of a checkpoint,
// "iteration". Figures of an earlier evaluation that this one did not measure stay where they are of the same weights.
void SetResults(const std::string& engine, const ConfigNode& findings, const EvaluatedWeights& weights,
                ConfigNode* results);

}  // namespace ssl

#endif  // SSL_ENGINES_EVALUATION_PLAN_H_
