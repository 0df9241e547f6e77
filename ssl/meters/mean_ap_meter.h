// SPDX-License-Identifier: Apache-2.0
//
// mean_ap_list_meter: mean average precision of multi-label outputs (average_precision.h).
//
// Values: "mAP" of each output, in percent, over the classes that have positives (NaN when none has); and "AP", once
// for each class in their order, as a fraction, -1 for a class without positives. Whoever writes them makes one list of
// values that share metric and output.
//
// The meter keeps every score of a phase (float32) and label (int8) of this rank on the device of the outputs:
// N x classes x (4 outputs + 1) bytes; max_cpu_capacity limits N. Values gathers a few hundred classes at a time from
// all ranks, so that it needs little more. The state of a checkpoint holds them, too.
#ifndef SSL_METERS_MEAN_AP_METER_H_
#define SSL_METERS_MEAN_AP_METER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/core/meter.h"
#include "ssl/core/value_names.h"
#include "ssl/meters/meter_options.h"

namespace ssl {

class MeanApMeter : public Meter, public NamesValues {
 public:
  // InvalidArgument when the names do not fit num_meters.
  static absl::StatusOr<std::unique_ptr<Meter>> Make(const MeanApMeterOptions& options);

  absl::string_view name() const override { return "mean_ap_list_meter"; }

  // outputs: [B, num_classes] each. targets: [B, num_classes], 1, 0 or -1. ResourceExhausted beyond max_cpu_capacity.
  absl::Status Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) override;

  absl::StatusOr<std::vector<MeterValue>> Values(Communicator& communicator) override;

  std::vector<ValueName> ValueNames() const override;

  void Reset() override;

  void VisitState(StateVisitor& visitor) override;

 private:
  MeanApMeter(const MeanApMeterOptions& options, std::vector<std::string> output_names);

  // [num_classes] float64 on the CPU, of output `output` over all ranks. rows: the most samples that a rank has.
  absl::StatusOr<at::Tensor> GatheredPrecision(size_t output, int64_t rows, Communicator& communicator) const;
  void Pack();
  void Unpack();
  void ReleasePacked();

  const MeanApMeterOptions options_;
  const std::vector<std::string> output_names_;

  std::vector<std::vector<at::Tensor>> scores_;  // per output, of each batch [B, num_classes] float
  std::vector<at::Tensor> targets_;              // of each batch [B, num_classes] int8
  int64_t samples_ = 0;

  // Bytes of the above while a checkpoint is read or written: their number is not known before.
  std::vector<std::string> packed_scores_;
  std::string packed_targets_;
};

}  // namespace ssl

#endif  // SSL_METERS_MEAN_AP_METER_H_
