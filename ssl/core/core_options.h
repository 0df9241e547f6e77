// SPDX-License-Identifier: Apache-2.0
//
// The configuration keys that the training loop itself reads, in VISSL's key tree. Keys that are ours are marked.
#ifndef SSL_CORE_CORE_OPTIONS_H_
#define SSL_CORE_CORE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/cadence.h"
#include "ssl/core/precision.h"
#include "ssl/core/shared_options.h"

namespace ssl {

// Keys directly under `config`.
struct RunOptions : ReportOptions {
  int64_t seed = 0;
  bool test_only = false;
  bool test_model = true;
  int64_t test_every_num_epoch = 1;
  int64_t test_start = 1;
  int64_t test_anchor = 1;
  void VisitFields(FieldVisitor& visitor) override;
};

// After which train phases a test phase is due.
Cadence TestCadence(const RunOptions& options);

struct CheckpointOptions : CheckpointCadenceOptions {
  std::string directory;  // "": a host's session keeps no files
  bool auto_resume = true;
  int64_t keep_last = 2;
  bool overwrite_existing = false;
  int64_t resume_from = -1;  // below 0: the newest
  std::string evaluate;      // "": the newest
  std::vector<std::string> allow_changes;
  bool save_in_background = true;
  void VisitFields(FieldVisitor& visitor) override;
};

// The section LOSS: which method trains.
struct LossOptions : Options {
  std::string name = "CrossEntropyLoss";
  void VisitFields(FieldVisitor& visitor) override;
};

// The task whose ranks share out the parameters (ssl/core/parameter_shards.h).
inline constexpr char kShardingTask[] = "self_supervision_fsdp_task";

// The section TRAINER.
struct TrainerOptions : Options {
  std::string train_step_name = "standard_train_step";
  std::string task_name = "self_supervision_task";
  bool shards_parameters() const { return task_name == kShardingTask; }
  void VisitFields(FieldVisitor& visitor) override;
};

// Of the section DATA, where VISSL has it: how gradients are reduced over ranks.
struct ReductionOptions : Options {
  int64_t bucket_mib = 25;
  void VisitFields(FieldVisitor& visitor) override;
};

// Of the section DISTRIBUTED: what ranks have in common in training.
struct ReplicaOptions : Options {
  bool broadcast_buffers = true;
  std::string gradient_compression = "none";
  void VisitFields(FieldVisitor& visitor) override;
};

struct MachineOptions : Options {
  std::string device = "cpu";
  void VisitFields(FieldVisitor& visitor) override;
};

// The section REPRODUCIBILITY.
struct ReproducibilityOptions : Options {
  bool deterministic_convolutions = false;
  bool ieee_convolutions = false;
  void VisitFields(FieldVisitor& visitor) override;
};

// Everything above, and what the loop reads of sections that belong to other packages.
struct TaskOptions {
  RunOptions run;
  CheckpointOptions checkpoint;
  LossOptions loss;
  MachineOptions machine;
  ReproducibilityOptions reproducibility;
  TrainerOptions trainer;
  ReductionOptions reduction;
  ReplicaOptions replicas;
  Precision precision;
  int64_t num_epochs = 0;
  int64_t batch_size = 0;          // per rank
  int64_t batches_per_update = 1;  // gradient accumulation
  std::string model_name;
  std::string optimizer_name;
  bool shards_optimizer = false;
  std::string parameter_grouping;
  std::vector<std::string> meters;
  bool meters_in_training = true;
};

// Reads the resolved tree under `config`; all problems at once. Unimplemented for a device that this program lacks.
absl::StatusOr<TaskOptions> ReadTaskOptions(const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_CORE_CORE_OPTIONS_H_
