// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/supervised/multiple_output_losses.h"

#include <ATen/ops/tensor.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/losses/bce_logits.h"
#include "ssl/losses/cross_entropy.h"

namespace ssl {
namespace {

constexpr char kCrossEntropy[] = "cross_entropy_multiple_output_single_target";
constexpr char kBceLogits[] = "bce_logits_multiple_output_single_target";

}  // namespace

void MultipleOutputCrossEntropy::VisitFields(FieldVisitor& visitor) {
  visitor.Field("weight", &weight_, Doc("a factor for each class, for labels that are class numbers; none: all 1"));
  visitor.Field("reduction", &reduction_, Doc("over the samples of a batch").OneOf({"mean", "sum"}));
  visitor.Field("ignore_index", &ignore_index_, Doc("samples with this label do not count"));
  visitor.Field("normalize_output", &normalize_output_, Doc("scores of a sample to unit length first"));
  visitor.Field("temperature", &temperature_, Doc("divides the scores").Above(0));
  visitor.Field("label_smoothing", &label_smoothing_, Doc("mass that is spread over all classes").Between(0, 1));
}

absl::StatusOr<std::vector<at::Tensor>> MultipleOutputCrossEntropy::Terms(const std::vector<at::Tensor>& outputs,
                                                                          const at::Tensor& targets) {
  if (!weight_.empty() && !weight_on_device_.defined()) {
    weight_on_device_ = at::tensor(weight_, outputs[0].options().dtype(at::kFloat));
  }
  CrossEntropyOptions options;
  options.weight = weight_on_device_;
  options.reduction = reduction_ == "mean" ? LossReduction::kMean : LossReduction::kSum;
  options.ignore_index = ignore_index_;
  options.normalize_output = normalize_output_;
  options.temperature = temperature_;
  options.label_smoothing = label_smoothing_;
  std::vector<at::Tensor> terms;
  for (const at::Tensor& output : outputs) {
    if (!weight_.empty() && output.size(-1) != static_cast<int64_t>(weight_.size())) {
      return absl::InvalidArgumentError(absl::StrCat("config.LOSS.", kCrossEntropy, ".weight has ", weight_.size(),
                                                     " entries, expected ", output.size(-1), ", one for each class"));
    }
    SSL_ASSIGN_OR_RETURN(at::Tensor term, CrossEntropy(output, targets, options));
    terms.push_back(std::move(term));
  }
  return terms;
}

void MultipleOutputBceLogits::VisitFields(FieldVisitor& visitor) {
  visitor.Field("reduction", &reduction_, Doc("has to be none: each class is averaged by itself").OneOf({"none"}));
  visitor.Field("world_size", &world_size_, Doc("not used; VISSL writes the number of ranks here").MayChange());
  visitor.Field("normalize_output", &normalize_output_, Doc("scores of a sample to unit length first"));
}

absl::StatusOr<std::vector<at::Tensor>> MultipleOutputBceLogits::Terms(const std::vector<at::Tensor>& outputs,
                                                                       const at::Tensor& targets) {
  std::vector<at::Tensor> terms;
  for (const at::Tensor& output : outputs) {
    SSL_ASSIGN_OR_RETURN(at::Tensor term, BceLogits(output, targets, normalize_output_));
    terms.push_back(std::move(term));
  }
  return terms;
}

std::vector<SupervisedLossEntry> MultipleOutputLosses() {
  return {{kCrossEntropy, [] { return std::make_unique<MultipleOutputCrossEntropy>(); }},
          {kBceLogits, [] { return std::make_unique<MultipleOutputBceLogits>(); }}};
}

}  // namespace ssl
