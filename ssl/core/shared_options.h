// SPDX-License-Identifier: Apache-2.0
//
// Keys that several parts of the program read, each declared here and nowhere else: the training loop reads of a
// section what it needs, and the struct of the package that owns the section derives from the same declaration.
#ifndef SSL_CORE_SHARED_OPTIONS_H_
#define SSL_CORE_SHARED_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/config/fields.h"

namespace ssl {

// Directly under `config`: what reports in the course of training follows.
struct ReportOptions : public Options {
  int64_t log_frequency = 10;
  void VisitFields(FieldVisitor& visitor) override;
};

// Of CHECKPOINT: when the run is saved (ssl/core/cadence.h).
struct CheckpointCadenceOptions : public Options {
  int64_t epoch_frequency = 1;
  int64_t epoch_start = 1;
  int64_t epoch_anchor = 1;
  int64_t iteration_frequency = -1;
  int64_t rolling_start = -1;
  int64_t rolling_frequency = 1;
  void VisitFields(FieldVisitor& visitor) override;
};

// Of OPTIMIZER: what the loop reads of it.
struct UpdateOptions : public Options {
  std::string name = "sgd";
  std::string param_group_constructor = "default";
  int64_t num_epochs = 90;
  int64_t batches_per_update = 1;  // gradient accumulation
  bool use_zero = false;           // ranks share the optimizer's work and state
  void VisitFields(FieldVisitor& visitor) override;
};

// Of MODEL.
struct ModelNameOptions : public Options {
  std::string base_model_name = "multi_input_output_model";
  void VisitFields(FieldVisitor& visitor) override;
};

// Of DATA.TRAIN and DATA.TEST.
struct BatchSizeOptions : public Options {
  int64_t batch_size_per_replica = 256;
  void VisitFields(FieldVisitor& visitor) override;
};

// Of METERS: which meters run, and when.
struct MeasuredOptions : public Options {
  std::vector<std::string> names;
  bool enable_training_meter = true;
  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_CORE_SHARED_OPTIONS_H_
