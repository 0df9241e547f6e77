// SPDX-License-Identifier: Apache-2.0
//
// engine_name=full_tune: fine-tunes the run's network, all weights and a new linear head, on the labels of DATA.TRAIN,
// and measures it on DATA.TEST after each epoch. The configuration follows from the run's: FullTuneConfig says how.
// It is a training run of its own in <run directory>/full_tune, which a stop interrupts and the same command resumes;
// one that began with other weights is refused, because its figures would pass for those of the present ones.
// Few labels: FULL_TUNE.DATA_LIMIT draws equally many samples of each class.
// Results: {"full_tune": {"top1": of the last epoch, "top5": likewise, "best_top1": of all epochs}}, fractions.
#ifndef SSL_ENGINES_FULL_TUNE_ENGINE_H_
#define SSL_ENGINES_FULL_TUNE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/evaluation_plan.h"

namespace ssl {

// The section FULL_TUNE; all keys are ours.
struct FullTuneOptions : Options {
  int64_t num_epochs = 10;
  int64_t batch_size = 128;  // per rank; at most all of its samples
  double learning_rate = 0.01;
  double weight_decay = 0.0;
  int64_t data_limit = -1;
  int64_t num_classes = 0;                     // 0: counted
  ConfigNode transforms = ConfigNode::List();  // of training; []: DATA.TEST's
  void VisitFields(FieldVisitor& visitor) override;
};

// What FullTuneConfig cannot tell from the run's configuration.
struct FullTuneTask {
  std::string directory;        // CHECKPOINT.DIR
  std::string params_file;      // MODEL.WEIGHTS_INIT.PARAMS_FILE; "": as the run's configuration says
  std::string initial_weights;  // what tells them from others: "checkpoint of iteration 120, crc32c:0a1b2c3d"
  int64_t feature_size = 0;     // of the trunk's output
  int64_t num_classes = 0;
  int64_t samples_per_rank = 0;   // of DATA.TRAIN; 0: not known
  EvaluatedWeights weights = {};  // those that it begins with
};

// The tree under "config" of the fine-tuning run: `config`, the run's own, resolved, with one linear head, cross
// entropy, accuracies, SGD with Nesterov momentum and a cosine schedule, and single views, each epoch whole and
// followed by a test; no hook of the run ends it early, averages, clips, measures or draws, and a batch is no larger
// than the data. `defaults`: of everything registered.
ConfigNode FullTuneConfig(const ConfigNode& config, const ConfigNode& defaults, const FullTuneOptions& options,
                          const FullTuneTask& task);

absl::StatusOr<std::unique_ptr<Engine>> MakeFullTuneEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_FULL_TUNE_ENGINE_H_
