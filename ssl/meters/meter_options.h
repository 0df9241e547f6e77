// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.METERS and of its sections, with VISSL's names and defaults.
#ifndef SSL_METERS_METER_OPTIONS_H_
#define SSL_METERS_METER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/config/fields.h"
#include "ssl/core/shared_options.h"

namespace ssl {

// Of METERS: what the hook model_output_mask reads.
struct OutputMaskOptions : public Options {
  bool model_output_mask = false;

  void VisitFields(FieldVisitor& visitor) override;
};

// METERS: which meters run, and when.
struct MetersOptions : public MeasuredOptions {
  std::string name;  // deprecated: added to names
  OutputMaskOptions output_mask;

  void VisitFields(FieldVisitor& visitor) override;
};

// METERS.accuracy_list_meter, METERS.precision_at_k_list_meter, METERS.recall_at_k_list_meter.
struct TopKMeterOptions : public Options {
  int64_t num_meters = 1;
  std::vector<int64_t> topk_values = {1};
  std::vector<std::string> meter_names;

  void VisitFields(FieldVisitor& visitor) override;
};

// METERS.mean_ap_list_meter.
struct MeanApMeterOptions : public Options {
  int64_t num_classes = 9605;  // Open Images
  int64_t num_meters = 1;
  int64_t max_cpu_capacity = -1;
  std::vector<std::string> meter_names;

  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_METERS_METER_OPTIONS_H_
