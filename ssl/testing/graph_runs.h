// SPDX-License-Identifier: Apache-2.0
//
// Whole training runs from a configuration on the stand-in device or the CPU, with the standard train step or the one
// that records updates, and what an observer sees of them.
#ifndef SSL_TESTING_GRAPH_RUNS_H_
#define SSL_TESTING_GRAPH_RUNS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/hook.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {

inline constexpr int64_t kStepsOfGraphRun = 14;

// A classifier of the images.
inline constexpr char kSupervisedRun[] = R"(
DATA: {TRAIN: {TRANSFORMS: [{name: ToTensor}, {name: Normalize, mean: [0.286], std: [0.353]}]}}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}}
LOSS: {name: cross_entropy_multiple_output_single_target}
METERS: {names: [accuracy_list_meter], accuracy_list_meter: {num_meters: 1, topk_values: [1]},
         enable_training_meter: True}
)";

struct GraphRun {
  // YAML, each over those before it; all over images of 16 x 16 in batches of 16, six an epoch, a vision transformer
  // without random numbers, SGD, and a learning rate that each update has for itself.
  std::vector<std::string> config;
  std::string device = "gpu";  // MACHINE.DEVICE
  std::string step = "graph_train_step";
  std::string directory;
  int64_t last_iteration = kStepsOfGraphRun;
  std::unique_ptr<Hook> hook = nullptr;  // a host's
};

struct GraphRunOutcome {
  // Each loss, learning rate, report of a phase and value of some metrics, by what it is.
  std::vector<std::pair<std::string, double>> values;
  int64_t recordings = 0;
  int64_t replays = 0;
  // Of the replayed updates without a report.
  TransferCounts reads;
  int64_t uploads = 0;
  int64_t batch_uploads = 0;  // tensors of their batches
};

// Trains to run.last_iteration, and saves. StandinDevice::Install comes before.
absl::StatusOr<GraphRunOutcome> TrainGraphRun(GraphRun run);

}  // namespace ssl

#endif  // SSL_TESTING_GRAPH_RUNS_H_
