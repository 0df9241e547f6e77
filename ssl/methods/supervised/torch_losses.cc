// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/supervised/torch_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/multi_margin_loss.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/soft_margin_loss.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/class_numbers.h"
#include "ssl/losses/cross_entropy.h"
#include "ssl/losses/scores.h"

namespace ssl {
namespace {

// The arguments of all losses; each reads those that it visits.
struct Arguments {
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  double label_smoothing = 0.0;
  double margin = 1.0;
  int64_t p = 1;
  double beta = 1.0;
  double delta = 1.0;
};

int64_t Reduction(const Arguments& arguments) {
  return arguments.reduction == "mean" ? at::Reduction::Mean : at::Reduction::Sum;
}

// ---- What targets have to be. Each returns them as the loss wants them.

absl::StatusOr<at::Tensor> SameShape(const at::Tensor& output, const at::Tensor& targets, const Arguments&) {
  const bool column = output.dim() == 2 && output.size(1) == 1 && targets.dim() == 1;
  const at::Tensor shaped = column ? targets.unsqueeze(1) : targets;
  if (shaped.sizes() != output.sizes()) {
    return absl::InvalidArgumentError(absl::StrCat("output has shape [", absl::StrJoin(output.sizes(), ", "),
                                                   "] and the targets [", absl::StrJoin(targets.sizes(), ", "),
                                                   "], expected the same"));
  }
  return shaped.to(output.scalar_type());
}

absl::StatusOr<at::Tensor> ClassNumbers(const at::Tensor& output, const at::Tensor& targets,
                                        std::optional<int64_t> ignore_index) {
  if (output.dim() != 2 || targets.scalar_type() != at::kLong || targets.dim() != 1 ||
      targets.size(0) != output.size(0)) {
    return absl::InvalidArgumentError(absl::StrCat("output has shape [", absl::StrJoin(output.sizes(), ", "),
                                                   "] and the targets ", at::toString(targets.scalar_type()), " [",
                                                   absl::StrJoin(targets.sizes(), ", "),
                                                   "], expected [B, C] and Long [B]"));
  }
  SSL_RETURN_IF_ERROR(CheckClassNumbers(targets, output.size(1), ignore_index));
  return targets;
}

absl::StatusOr<at::Tensor> AnyClassNumbers(const at::Tensor& output, const at::Tensor& targets, const Arguments&) {
  return ClassNumbers(output, targets, std::nullopt);
}

absl::StatusOr<at::Tensor> ClassNumbersOrIgnored(const at::Tensor& output, const at::Tensor& targets,
                                                 const Arguments& arguments) {
  return ClassNumbers(output, targets, arguments.ignore_index);
}

absl::StatusOr<at::Tensor> Unchecked(const at::Tensor&, const at::Tensor& targets, const Arguments&) { return targets; }

// ---- The losses. output: at least float32; targets: as prepared.

absl::StatusOr<at::Tensor> CrossEntropyOf(const at::Tensor& output, const at::Tensor& targets,
                                          const Arguments& arguments) {
  CrossEntropyOptions options;
  options.reduction = arguments.reduction == "mean" ? LossReduction::kMean : LossReduction::kSum;
  options.ignore_index = arguments.ignore_index;
  options.label_smoothing = arguments.label_smoothing;
  return CrossEntropy(output, targets, options);
}

absl::StatusOr<at::Tensor> Nll(const at::Tensor& output, const at::Tensor& targets, const Arguments& arguments) {
  return at::nll_loss(output, targets, /*weight=*/{}, Reduction(arguments), arguments.ignore_index);
}

absl::StatusOr<at::Tensor> MultiMargin(const at::Tensor& output, const at::Tensor& targets,
                                       const Arguments& arguments) {
  return at::multi_margin_loss(output, targets, arguments.p, arguments.margin, /*weight=*/{}, Reduction(arguments));
}

absl::StatusOr<at::Tensor> BceWithLogits(const at::Tensor& output, const at::Tensor& targets,
                                         const Arguments& arguments) {
  return at::binary_cross_entropy_with_logits(output, targets, /*weight=*/{}, /*pos_weight=*/{}, Reduction(arguments));
}

// The mean over the classes, then the reduction over the samples.
absl::StatusOr<at::Tensor> MultiLabelSoftMargin(const at::Tensor& output, const at::Tensor& targets,
                                                const Arguments& arguments) {
  const at::Tensor of_class =
      at::binary_cross_entropy_with_logits(output, targets, /*weight=*/{}, /*pos_weight=*/{}, at::Reduction::None);
  const at::Tensor of_sample = of_class.mean(-1);
  return arguments.reduction == "mean" ? of_sample.mean() : of_sample.sum();
}

absl::StatusOr<at::Tensor> SoftMargin(const at::Tensor& output, const at::Tensor& targets, const Arguments& arguments) {
  return at::soft_margin_loss(output, targets, Reduction(arguments));
}

absl::StatusOr<at::Tensor> KlDiv(const at::Tensor& output, const at::Tensor& targets, const Arguments& arguments) {
  const at::Tensor loss = at::kl_div(output, targets, Reduction(arguments));
  return arguments.reduction == "batchmean" ? loss / output.size(0) : loss;
}

absl::StatusOr<at::Tensor> Mse(const at::Tensor& output, const at::Tensor& targets, const Arguments& arguments) {
  return at::mse_loss(output, targets, Reduction(arguments));
}

absl::StatusOr<at::Tensor> L1(const at::Tensor& output, const at::Tensor& targets, const Arguments& arguments) {
  return at::l1_loss(output, targets, Reduction(arguments));
}

absl::StatusOr<at::Tensor> SmoothL1(const at::Tensor& output, const at::Tensor& targets, const Arguments& arguments) {
  return at::smooth_l1_loss(output, targets, Reduction(arguments), arguments.beta);
}

absl::StatusOr<at::Tensor> Huber(const at::Tensor& output, const at::Tensor& targets, const Arguments& arguments) {
  return at::huber_loss(output, targets, Reduction(arguments), arguments.delta);
}

// ---- Their arguments.

void VisitReduction(FieldVisitor& visitor, Arguments* arguments) {
  visitor.Field("reduction", &arguments->reduction, Doc("over the samples of a batch").OneOf({"mean", "sum"}));
}

void VisitIgnoreIndex(FieldVisitor& visitor, Arguments* arguments) {
  VisitReduction(visitor, arguments);
  visitor.Field("ignore_index", &arguments->ignore_index, Doc("samples with this label do not count"));
}

void VisitCrossEntropy(FieldVisitor& visitor, Arguments* arguments) {
  VisitIgnoreIndex(visitor, arguments);
  visitor.Field("label_smoothing", &arguments->label_smoothing,
                Doc("mass that is spread over all classes").Between(0, 1));
}

void VisitMultiMargin(FieldVisitor& visitor, Arguments* arguments) {
  VisitReduction(visitor, arguments);
  visitor.Field("p", &arguments->p, Doc("power of the differences").Between(1, 2));
  visitor.Field("margin", &arguments->margin, Doc("by which the score of the label has to lead"));
}

void VisitKlDiv(FieldVisitor& visitor, Arguments* arguments) {
  visitor.Field("reduction", &arguments->reduction,
                Doc("over the samples of a batch").OneOf({"mean", "sum", "batchmean"}));
}

void VisitSmoothL1(FieldVisitor& visitor, Arguments* arguments) {
  VisitReduction(visitor, arguments);
  visitor.Field("beta", &arguments->beta, Doc("difference from which on the loss is linear").AtLeast(0));
}

void VisitHuber(FieldVisitor& visitor, Arguments* arguments) {
  VisitReduction(visitor, arguments);
  visitor.Field("delta", &arguments->delta, Doc("difference from which on the loss is linear").Above(0));
}

using TargetFunction = absl::StatusOr<at::Tensor> (*)(const at::Tensor&, const at::Tensor&, const Arguments&);

struct Row {
  const char* name;
  void (*visit)(FieldVisitor&, Arguments*);
  TargetFunction prepare;
  TargetFunction compute;
  Arguments defaults = {};
};

// VISSL's defaults have this ignore_index.
Arguments CrossEntropyDefaults() {
  Arguments arguments;
  arguments.ignore_index = -1;
  return arguments;
}

std::vector<Row> Rows() {
  return {
      {"BCEWithLogitsLoss", &VisitReduction, &SameShape, &BceWithLogits},
      {"CrossEntropyLoss", &VisitCrossEntropy, &Unchecked, &CrossEntropyOf, CrossEntropyDefaults()},
      {"HuberLoss", &VisitHuber, &SameShape, &Huber},
      {"KLDivLoss", &VisitKlDiv, &SameShape, &KlDiv},
      {"L1Loss", &VisitReduction, &SameShape, &L1},
      {"MSELoss", &VisitReduction, &SameShape, &Mse},
      {"MultiLabelSoftMarginLoss", &VisitReduction, &SameShape, &MultiLabelSoftMargin},
      {"MultiMarginLoss", &VisitMultiMargin, &AnyClassNumbers, &MultiMargin},
      {"NLLLoss", &VisitIgnoreIndex, &ClassNumbersOrIgnored, &Nll},
      {"SmoothL1Loss", &VisitSmoothL1, &SameShape, &SmoothL1},
      {"SoftMarginLoss", &VisitReduction, &SameShape, &SoftMargin},
  };
}

class TorchLoss : public SupervisedLoss {
 public:
  explicit TorchLoss(const Row& row) : row_(row), arguments_(row.defaults) {}

  void VisitFields(FieldVisitor& visitor) override { row_.visit(visitor, &arguments_); }

  absl::StatusOr<std::vector<at::Tensor>> Terms(const std::vector<at::Tensor>& outputs,
                                                const at::Tensor& targets) override {
    if (outputs.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("config.LOSS.name is ", row_.name, ", which takes one output, the model has ", outputs.size(),
                       " (config.MODEL.HEAD.PARAMS); expected the loss of that head, such as swav_loss of a swav_head, "
                       "or cross_entropy_multiple_output_single_target, which takes several"));
    }
    const at::Tensor output = FullPrecision(outputs[0]);
    SSL_ASSIGN_OR_RETURN(const at::Tensor prepared, row_.prepare(output, targets, arguments_));
    SSL_ASSIGN_OR_RETURN(at::Tensor loss, row_.compute(output, prepared, arguments_));
    return std::vector<at::Tensor>{std::move(loss)};
  }

  // All others compare values, in the shape of the output.
  bool labels_are_classes() const override { return row_.prepare != &SameShape; }
  int64_t ignored_label() const override { return arguments_.ignore_index; }

 private:
  const Row row_;
  Arguments arguments_;
};

}  // namespace

std::vector<SupervisedLossEntry> TorchLosses() {
  std::vector<SupervisedLossEntry> losses;
  for (const Row& row : Rows()) losses.push_back({row.name, [row] { return std::make_unique<TorchLoss>(row); }});
  return losses;
}

}  // namespace ssl
