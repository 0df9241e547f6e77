// SPDX-License-Identifier: Apache-2.0
//
// VISSL's losses of several outputs (heads) that share their labels: cross_entropy_multiple_output_single_target and
// bce_logits_multiple_output_single_target. The objective is the sum over the outputs.
#ifndef SSL_METHODS_SUPERVISED_MULTIPLE_OUTPUT_LOSSES_H_
#define SSL_METHODS_SUPERVISED_MULTIPLE_OUTPUT_LOSSES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/methods/supervised/supervised_loss.h"

namespace ssl {

// ssl/losses/cross_entropy.h.
class MultipleOutputCrossEntropy : public SupervisedLoss {
 public:
  void VisitFields(FieldVisitor& visitor) override;
  absl::StatusOr<std::vector<at::Tensor>> Terms(const std::vector<at::Tensor>& outputs,
                                                const at::Tensor& targets) override;
  bool labels_are_classes() const override { return true; }
  int64_t ignored_label() const override { return ignore_index_; }

 private:
  std::vector<double> weight_;
  std::string reduction_ = "mean";
  int64_t ignore_index_ = -1;
  bool normalize_output_ = false;
  double temperature_ = 1.0;
  double label_smoothing_ = 0.0;
  at::Tensor weight_on_device_;  // weight_, once the device is known; undefined when it is empty
};

// ssl/losses/bce_logits.h.
class MultipleOutputBceLogits : public SupervisedLoss {
 public:
  void VisitFields(FieldVisitor& visitor) override;
  absl::StatusOr<std::vector<at::Tensor>> Terms(const std::vector<at::Tensor>& outputs,
                                                const at::Tensor& targets) override;

 private:
  std::string reduction_ = "none";
  int64_t world_size_ = 1;
  bool normalize_output_ = false;
};

// Both, by VISSL's names.
std::vector<SupervisedLossEntry> MultipleOutputLosses();

}  // namespace ssl

#endif  // SSL_METHODS_SUPERVISED_MULTIPLE_OUTPUT_LOSSES_H_
