// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/supervised/supervised_method.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/core/counted_samples.h"

namespace ssl {
namespace {

absl::Status NoLabelsError(const std::string& name, bool training) {
  const char* split = training ? "TRAIN" : "TEST";
  return absl::InvalidArgumentError(absl::StrCat(
      "config.LOSS.name is ", name, ", which needs labels, but the batch has none; expected config.DATA.", split,
      ".LABEL_SOURCES for each data source, or config.DATA.", split, ".LABEL_TYPE sample_index or zero"));
}

}  // namespace

// A batch of nothing but a repeated sample keeps it: there is no mean over nothing.
absl::StatusOr<std::vector<at::Tensor>> SupervisedMethod::TermsOfCounted(const StepContext& context) {
  const at::Tensor& targets = context.batch->targets;
  const int64_t counted = CountedSamples(context);
  if (counted == context.batch->size() || counted == 0) return loss_->Terms(context.outputs, targets);
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& output : context.outputs) outputs.push_back(CountedRows(output, context));
  return loss_->Terms(outputs, CountedRows(targets, context));
}

absl::Status SupervisedMethod::ComputeLoss(StepContext& context) {
  const at::Tensor& targets = context.batch->targets;
  if (!targets.defined()) return NoLabelsError(name_, context.state.training);
  SSL_RET_CHECK(!context.outputs.empty(), "a model returned no output");
  absl::StatusOr<std::vector<at::Tensor>> terms = TermsOfCounted(context);
  if (absl::StrContains(terms.status().message(), name_)) return terms.status();
  if (!terms.ok()) return Annotate(terms.status(), name_);
  context.loss = (*terms)[0];
  for (size_t i = 1; i < terms->size(); ++i) context.loss = context.loss + (*terms)[i];
  if (!context.state.training) return absl::OkStatus();
  has_terms_as_metrics_ = terms->size() > 1;
  if (!has_terms_as_metrics_) return absl::OkStatus();
  for (size_t i = 0; i < terms->size(); ++i) {
    context.metrics.Add(absl::StrCat("Loss/output_", i), (*terms)[i].detach());
  }
  return absl::OkStatus();
}

}  // namespace ssl
