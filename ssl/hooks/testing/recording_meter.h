// SPDX-License-Identifier: Apache-2.0
//
// A meter for tests of what meters are given.
#ifndef SSL_HOOKS_TESTING_RECORDING_METER_H_
#define SSL_HOOKS_TESTING_RECORDING_METER_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/meter.h"

namespace ssl {

// Notes the outputs that it is given, of models with one number as their output; its value is how many they are.
class RecordingMeter : public Meter {
 public:
  // outputs: outlives the meter.
  explicit RecordingMeter(std::vector<double>* outputs) : outputs_(*outputs) {}

  absl::string_view name() const override { return "recording"; }
  absl::Status Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) override {
    outputs_.push_back(outputs[0].item<double>());
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<MeterValue>> Values(Communicator& communicator) override {
    return std::vector<MeterValue>{{"batches", "0", static_cast<double>(outputs_.size())}};
  }
  void Reset() override { outputs_.clear(); }

 private:
  std::vector<double>& outputs_;
};

}  // namespace ssl

#endif  // SSL_HOOKS_TESTING_RECORDING_METER_H_
