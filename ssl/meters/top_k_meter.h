// SPDX-License-Identifier: Apache-2.0
//
// Meters of the k best scores of each sample, for several k and several outputs (VISSL's list meters). With N samples,
// topk_b the classes of the k best scores of sample b and pos_b its labels:
//
//   accuracy_list_meter        share of samples with topk_b and pos_b in common
//   precision_at_k_list_meter  sum_b |topk_b and pos_b| / (k N)
//   recall_at_k_list_meter     sum_b |topk_b and pos_b| / sum_b |pos_b|
//
// in percent, 0 when nothing was counted. Targets are [B] or [B, 1] int64 class numbers, or [B, classes]: integers whose
// entries above 0 are the labels, or floating weights (soft labels), whose largest ones are. Scores may be -inf.
#ifndef SSL_METERS_TOP_K_METER_H_
#define SSL_METERS_TOP_K_METER_H_

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

// What a meter has counted for one output and one k.
struct TopKCounts {
  int64_t k = 0;
  int64_t hits = 0;       // as the rule counts them
  int64_t positives = 0;  // labels of all samples
  int64_t samples = 0;
};

// What makes one of these meters.
struct TopKRule {
  absl::string_view name;
  // hits: [B, K] bool, whether a sample's best, second, ... score is of one of its labels. Returns [K] int64: what the
  // meter counts when it looks at the first 1, 2, ... K columns.
  at::Tensor (*count)(const at::Tensor& hits);
  double (*ratio)(const TopKCounts& counts);
};

// One row for each meter of the opening comment.
const std::vector<TopKRule>& TopKRules();

// Values are named "top_1", "top_5", ... in the order of topk_values.
class TopKMeter : public Meter, public NamesValues {
 public:
  // InvalidArgument when there is no k, or when the names do not fit num_meters.
  static absl::StatusOr<std::unique_ptr<Meter>> Make(const TopKRule& rule, const TopKMeterOptions& options);

  absl::string_view name() const override { return rule_.name; }

  // InvalidArgument, naming both, also when k is larger than the number of classes.
  absl::Status Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) override;

  // One reduction of all counts.
  absl::StatusOr<std::vector<MeterValue>> Values(Communicator& communicator) override;

  std::vector<ValueName> ValueNames() const override;

  void Reset() override;

  void VisitState(StateVisitor& visitor) override;

 private:
  TopKMeter(const TopKRule& rule, std::vector<int64_t> topk_values, std::vector<std::string> output_names);

  absl::Status CheckClasses(const at::Tensor& scores, const at::Tensor& labels, const std::string& output) const;

  const TopKRule rule_;
  const std::vector<int64_t> topk_values_;
  const std::vector<std::string> output_names_;
  const int64_t max_k_;

  at::Tensor counts_;     // [outputs, max k] int64, on the device of the outputs
  at::Tensor positives_;  // [1] int64, there too
  int64_t samples_ = 0;
};

}  // namespace ssl

#endif  // SSL_METERS_TOP_K_METER_H_
