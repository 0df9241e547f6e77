// SPDX-License-Identifier: Apache-2.0
//
// Training with labels: the model on all views, then a loss of its outputs against the labels of the batch.
//
// The objective is the sum of the loss's terms. When there are several (one for each output), each is a metric by
// itself, "Loss/output_<i>", the mean of train steps. The loss of a test batch is that of its samples that count
// (ssl/core/counted_samples.h). No state.
#ifndef SSL_METHODS_SUPERVISED_SUPERVISED_METHOD_H_
#define SSL_METHODS_SUPERVISED_SUPERVISED_METHOD_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/method.h"
#include "ssl/core/step_context.h"
#include "ssl/methods/supervised/supervised_loss.h"

namespace ssl {

class SupervisedMethod : public Method {
 public:
  // name: LOSS.name, for messages.
  SupervisedMethod(std::string name, std::unique_ptr<SupervisedLoss> loss)
      : name_(std::move(name)), loss_(std::move(loss)) {}

  // InvalidArgument when the batch has no labels, or when they do not fit the outputs.
  absl::Status ComputeLoss(StepContext& context) override;

  // None for several terms, which are metrics that the host adds.
  std::optional<int64_t> RecordingKey(const StepContext&) const override {
    return has_terms_as_metrics_ ? std::nullopt : std::optional<int64_t>(0);
  }

  bool needs_labels() const override { return true; }
  bool labels_are_classes() const override { return loss_->labels_are_classes(); }
  int64_t ignored_label() const override { return loss_->ignored_label(); }
  // Also where the labels are a value for each class.
  bool scores_classes() const override { return true; }

 private:
  absl::StatusOr<std::vector<at::Tensor>> TermsOfCounted(const StepContext& context);

  const std::string name_;
  const std::unique_ptr<SupervisedLoss> loss_;
  bool has_terms_as_metrics_ = false;  // of the last batch that was trained on
};

}  // namespace ssl

#endif  // SSL_METHODS_SUPERVISED_SUPERVISED_METHOD_H_
