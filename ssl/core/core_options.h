// SPDX-License-Identifier: Apache-2.0
//
// The configuration keys that the training loop itself reads, in VISSL's key tree. Keys that are ours are marked.
#ifndef SSL_CORE_CORE_OPTIONS_H_
#define SSL_CORE_CORE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

struct Registries;

// Keys directly under `config`.
struct RunOptions : Options {
  int64_t seed = 0;
  int64_t log_frequency = 10;
  bool test_only = false;
  bool test_model = false;
  int64_t test_every_num_epoch = 1;
  void VisitFields(FieldVisitor& visitor) override;
};

struct CheckpointOptions : Options {
  std::string directory = ".";
  bool auto_resume = true;
  int64_t epoch_frequency = 1;
  int64_t iteration_frequency = -1;
  int64_t keep_last = 2;
  bool overwrite_existing = false;
  void VisitFields(FieldVisitor& visitor) override;
};

// The section LOSS: which method trains.
struct LossOptions : Options {
  std::string name = "swav_loss";
  void VisitFields(FieldVisitor& visitor) override;
};

struct MachineOptions : Options {
  std::string device = "cpu";
  void VisitFields(FieldVisitor& visitor) override;
};

// Everything above, and what the loop reads of sections that belong to other packages.
struct TaskOptions {
  RunOptions run;
  CheckpointOptions checkpoint;
  LossOptions loss;
  MachineOptions machine;
  int64_t num_epochs = 0;
  int64_t batch_size = 0;  // per rank
  bool use_autocast = false;
  std::string model_name;
  std::string optimizer_name;
  std::string parameter_grouping;
};

// Adds these keys to the catalog.
absl::Status RegisterCore(Registries* registries);

// Reads the resolved tree under `config`; all problems at once.
absl::StatusOr<TaskOptions> ReadTaskOptions(const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_CORE_CORE_OPTIONS_H_
