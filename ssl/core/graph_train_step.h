// SPDX-License-Identifier: Apache-2.0
//
// A train step that records the operations of a whole update, all its batches, and gives them to the device again at
// once (LiBai's GraphTrainer): what the host costs in each operation, it costs once. TRAINER.TRAIN_STEP_NAME chooses
// it. On a device without graphs, the CPU above all, it is the standard step. docs/devices.md has what is recorded.
//
// An update is recorded when the two before it were made in full with the same key: shapes of the batch, numbers that
// the host decides by, and what method and hooks say of themselves (RecordingKey). Another key makes an update in full;
// the recording stays beside it only where the keys differ by the batch's size alone and the device has room for both
// (docs/devices.md). Learning rates are no part of it: they are tensors
// (ParameterGroup::learning_rate_tensor), written before each replay.
//
// What cannot be recorded is told once, in a line of the log, with what to change; those updates are the standard
// step's. An operation that refuses to be recorded is an error of the run: by then a part of the update is done.
#ifndef SSL_CORE_GRAPH_TRAIN_STEP_H_
#define SSL_CORE_GRAPH_TRAIN_STEP_H_

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch.h"
#include "ssl/core/device_graph.h"
#include "ssl/core/held_batches.h"
#include "ssl/core/registries.h"
#include "ssl/core/standard_train_step.h"
#include "ssl/core/train_step.h"
#include "ssl/core/update_key.h"

namespace ssl {

// Null for a type of device that has no graphs.
using MakeDeviceGraph = std::function<absl::StatusOr<std::unique_ptr<DeviceGraph>>(c10::DeviceType type)>;

class GraphTrainStep : public TrainStep {
 public:
  // obstacle: what keeps all updates from being recorded, as the log shall tell; "" for nothing that is known before.
  GraphTrainStep(MakeDeviceGraph make_graph, std::string obstacle)
      : make_graph_(std::move(make_graph)), obstacle_(std::move(obstacle)) {}

  absl::Status Train(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches, StepContext& context) override;
  absl::Status Test(SelfSupervisionTask& task, HookList& hooks, StepContext& context) override;

  // Of updates, in all.
  int64_t recordings() const { return recordings_; }
  int64_t replays() const { return replays_; }

 private:
  struct Recording {
    UpdateKey key;
    std::unique_ptr<DeviceGraph> graph;
    std::vector<Batch> batches;                    // what it reads
    std::vector<at::Tensor> losses;                // of each batch, without a graph
    std::vector<std::vector<at::Tensor>> outputs;  // likewise
    std::vector<at::Tensor> gradients;             // of each parameter of the groups, which may have none
    at::Tensor found_inf;                          // StepContext::found_inf
  };

  // Copies the batches, then replays, records, or trains in full.
  absl::Status TrainOnHeld(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches, StepContext& context);
  absl::Status TrainFully(SelfSupervisionTask& task, HookList& hooks, HeldBatches& held, StepContext& context,
                          const UpdateKey& key);
  absl::Status Record(SelfSupervisionTask& task, HookList& hooks, StepContext& context, UpdateKey key);
  // What is recorded.
  absl::Status RunUpdate(SelfSupervisionTask& task, HookList& hooks, StepContext& context, Recording* recording);
  // What a recording leaves to the host: meters, hooks that observe, and the counters.
  absl::Status Observe(SelfSupervisionTask& task, HookList& hooks, UpdateBatches& batches, StepContext& context);
  void WriteLearningRates(SelfSupervisionTask& task);
  void TellOnce(const std::string& line);

  const MakeDeviceGraph make_graph_;
  StandardTrainStep standard_;
  std::unique_ptr<DeviceGraph> next_graph_;
  bool has_graphs_ = true;
  std::string obstacle_;      // for good; "" while there is none
  std::vector<Batch> slots_;  // context.batch is one of them
  std::unique_ptr<Recording> recording_;
  UpdateKey last_key_;            // of updates made in full
  int64_t updates_with_key_ = 0;  // the last ones, without another update in between
  at::Tensor learning_rates_;     // [groups]
  std::vector<double> written_;   // what they hold
  std::set<std::string> told_;
  int64_t recordings_ = 0;
  int64_t replays_ = 0;
};

// params: the TRAINER node.
absl::StatusOr<std::unique_ptr<TrainStep>> MakeGraphTrainStep(const ConfigNode& params, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_CORE_GRAPH_TRAIN_STEP_H_
