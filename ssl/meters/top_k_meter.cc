// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/top_k_meter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/communicator.h"
#include "ssl/meters/meter_outputs.h"

namespace ssl {
namespace {

// A sample counts once, from the column of its first hit on.
at::Tensor CountSamples(const at::Tensor& hits) { return hits.cumsum(1).clamp_max(1).sum(0); }

at::Tensor CountHits(const at::Tensor& hits) { return hits.sum(0).cumsum(0); }

double Ratio(int64_t numerator, int64_t denominator) {
  return static_cast<double>(numerator) / static_cast<double>(std::max<int64_t>(1, denominator));
}

double Accuracy(const TopKCounts& counts) { return Ratio(counts.hits, counts.samples); }
double Precision(const TopKCounts& counts) { return Ratio(counts.hits, counts.k * counts.samples); }
double Recall(const TopKCounts& counts) { return Ratio(counts.hits, counts.positives); }

// [B] class numbers or [B, classes] whose entries above 0 are the labels: a column of class numbers becomes the former,
// weights of classes the latter. Smoothed ones are above 0 everywhere, so that any class would be a hit.
at::Tensor ClassNumbersOrLabels(const at::Tensor& targets, int64_t num_classes) {
  const bool column = targets.dim() == 2 && targets.size(1) == 1 && num_classes > 1;
  if (column) return targets.squeeze(1);
  if (targets.dim() != 2 || !targets.is_floating_point()) return targets;
  return targets.eq(targets.amax(1, /*keepdim=*/true)).logical_and(targets.gt(0));
}

}  // namespace

const std::vector<TopKRule>& TopKRules() {
  static const auto* const rules = new std::vector<TopKRule>{{"accuracy_list_meter", &CountSamples, &Accuracy},
                                                             {"precision_at_k_list_meter", &CountHits, &Precision},
                                                             {"recall_at_k_list_meter", &CountHits, &Recall}};
  return *rules;
}

absl::StatusOr<std::unique_ptr<Meter>> TopKMeter::Make(const TopKRule& rule, const TopKMeterOptions& options) {
  if (options.topk_values.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.METERS.", rule.name, ".topk_values is empty, expected at least one number"));
  }
  SSL_ASSIGN_OR_RETURN(std::vector<std::string> names, OutputNames(rule.name, options.num_meters, options.meter_names));
  return std::unique_ptr<Meter>(new TopKMeter(rule, options.topk_values, std::move(names)));
}

TopKMeter::TopKMeter(const TopKRule& rule, std::vector<int64_t> topk_values, std::vector<std::string> output_names)
    : rule_(rule),
      topk_values_(std::move(topk_values)),
      output_names_(std::move(output_names)),
      max_k_(*std::max_element(topk_values_.begin(), topk_values_.end())),
      counts_(at::zeros({static_cast<int64_t>(output_names_.size()), max_k_}, at::kLong)),
      positives_(at::zeros({1}, at::kLong)) {}

absl::Status TopKMeter::Update(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) {
  const at::NoGradGuard no_grad;
  SSL_RETURN_IF_ERROR(CheckOutputs(rule_.name, static_cast<int64_t>(output_names_.size()), outputs, targets));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& scores = outputs[i];
    const at::Tensor labels = ClassNumbersOrLabels(targets, scores.size(1));
    SSL_RETURN_IF_ERROR(CheckClasses(scores, labels, output_names_[i]));
    if (counts_.device() != scores.device()) {
      counts_ = counts_.to(scores.device());
      positives_ = positives_.to(scores.device());
    }
    const at::Tensor best = std::get<1>(at::topk(scores, max_k_, 1));  // [B, max k] class numbers
    const at::Tensor hits = labels.dim() == 1 ? best.eq(labels.unsqueeze(1)) : labels.gather(1, best).gt(0);
    counts_.select(0, static_cast<int64_t>(i)).add_(rule_.count(hits));
    if (i > 0) continue;
    samples_ += scores.size(0);
    if (labels.dim() == 1) {
      positives_.add_(scores.size(0));
    } else {
      positives_.add_(labels.gt(0).sum());
    }
  }
  return absl::OkStatus();
}

absl::Status TopKMeter::CheckClasses(const at::Tensor& scores, const at::Tensor& labels,
                                     const std::string& output) const {
  if (max_k_ > scores.size(1)) {
    return absl::InvalidArgumentError(absl::StrCat("config.METERS.", rule_.name, ".topk_values asks for the best ",
                                                   max_k_, " scores, but output ", output, " of the model has ",
                                                   scores.size(1), " classes"));
  }
  if (labels.dim() == 1 || labels.sizes() == scores.sizes()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(rule_.name, ": output ", output, " has shape [",
                                                 absl::StrJoin(scores.sizes(), ", "), "] and the labels [",
                                                 absl::StrJoin(labels.sizes(), ", "), "], expected the same, or [B]"));
}

absl::StatusOr<std::vector<MeterValue>> TopKMeter::Values(Communicator& communicator) {
  at::Tensor packed = at::cat({counts_.flatten(), positives_, at::full({1}, samples_, positives_.options())});
  SSL_RETURN_IF_ERROR(communicator.AllReduce(packed, ReduceOp::kSum));
  packed = packed.cpu();
  const int64_t* counts = packed.const_data_ptr<int64_t>();
  const int64_t positives = counts[counts_.numel()];
  const int64_t samples = counts[counts_.numel() + 1];

  std::vector<MeterValue> values;
  for (const int64_t k : topk_values_) {
    for (size_t i = 0; i < output_names_.size(); ++i) {
      const int64_t hits = counts[static_cast<int64_t>(i) * max_k_ + k - 1];
      const double ratio = rule_.ratio({k, hits, positives, samples});
      values.push_back({absl::StrCat("top_", k), output_names_[i], RoundedPercent(ratio)});
    }
  }
  return values;
}

std::vector<ValueName> TopKMeter::ValueNames() const {
  std::vector<ValueName> names;
  for (const int64_t k : topk_values_) {
    for (const std::string& output : output_names_) names.push_back({absl::StrCat("top_", k), output});
  }
  return names;
}

void TopKMeter::Reset() {
  counts_.zero_();
  positives_.zero_();
  samples_ = 0;
}

void TopKMeter::VisitState(StateVisitor& visitor) {
  visitor.Tensor("counts", counts_);
  visitor.Tensor("positives", positives_);
  visitor.Int("samples", samples_);
  for (const char* name : {"counts", "positives", "samples"}) visitor.RanksDiffer(name, RankValues::kSum);
}

}  // namespace ssl
