// SPDX-License-Identifier: Apache-2.0
//
// Measures a model's outputs against the labels over a phase: accuracy, precision, mean average precision.
//
// A meter accumulates on the device of the outputs and never waits for it; Values reads the result once per phase.
// Used by the training thread only. A meter's own class is one file pair in ssl/meters and one line
// `registries->meters.Register(name, factory)`, whose factory gets the section METERS.<name>.
#ifndef SSL_CORE_METER_H_
#define SSL_CORE_METER_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/stateful.h"

namespace ssl {

class Communicator;

// One number of a meter: "top_1" of output "res5". Accuracies are in percent.
struct MeterValue {
  std::string metric;
  std::string output;  // the name of the model's output, or its position: "0"
  double value = 0.0;
};

// What one meter says about a phase.
struct MeterReport {
  std::string meter;  // "accuracy_list_meter"; with "_ema" at its end when the averaged model was measured
  std::vector<MeterValue> values;
  // What its values are of: "Host" for what a host's hook measures. Empty: the phase that ends, "Training" or
  // "Testing"; "Evaluation" is the hook eval's. Options that choose a metric know the names of these three beforehand,
  // and refuse all others there (ssl/hooks/measured_names.h).
  std::string scope = {};
};

class Meter : public Stateful {
 public:
  // The name in METERS.names.
  virtual absl::string_view name() const = 0;

  // Adds a batch. outputs: the model's, one [B, classes] per head; targets: as in Batch. InvalidArgument names both
  // shapes when they do not fit. May throw LibTorch exceptions.
  virtual absl::Status Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) = 0;

  // Over all batches since Reset and all ranks. Collective.
  virtual absl::StatusOr<std::vector<MeterValue>> Values(Communicator& communicator) = 0;

  virtual void Reset() = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_METER_H_
