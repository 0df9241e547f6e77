// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/linear_probe.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

// Rows of a matrix of features, as the classifiers see them.
struct Standardizer {
  at::Tensor mean;     // [D]; undefined: rows stay as they are
  at::Tensor inverse;  // [D]

  // Over rows `positions` of `features`, in pieces that bound the memory. A constant feature becomes zero.
  static Standardizer Of(const at::Tensor& features, const at::Tensor& positions);

  at::Tensor Apply(const at::Tensor& rows) const { return mean.defined() ? rows.sub(mean).mul_(inverse) : rows; }
};

constexpr int64_t kPiece = 8192;  // rows

Standardizer Standardizer::Of(const at::Tensor& features, const at::Tensor& positions) {
  at::Tensor sum = at::zeros({features.size(1)}, at::kDouble);
  at::Tensor squares = at::zeros_like(sum);
  const at::Tensor offset = features[positions[0].item<int64_t>()].to(at::kDouble);  // for precise squares
  for (int64_t begin = 0; begin < positions.size(0); begin += kPiece) {
    const at::Tensor rows =
        features.index_select(0, positions.slice(0, begin, begin + kPiece)).to(at::kDouble).sub_(offset);
    sum.add_(rows.sum(0));
    squares.add_(rows.square().sum(0));
  }
  const double count = static_cast<double>(positions.size(0));
  const at::Tensor mean = sum.div(count);
  const at::Tensor deviation = squares.div(count).sub(mean.square()).clamp_min(0.0).sqrt();
  const at::Tensor inverse = deviation.gt(1e-6).to(at::kDouble).div(deviation.clamp_min(1e-6));
  return {mean.add(offset).to(at::kFloat), inverse.to(at::kFloat)};
}

// One linear classifier for each learning rate, side by side.
class Classifiers {
 public:
  Classifiers(int64_t dimensions, int64_t classes, const LinearProbeOptions& options)
      : rates_(static_cast<int64_t>(options.learning_rates.size())),
        classes_(classes),
        momentum_(options.momentum),
        weight_decay_(options.weight_decay),
        learning_rates_(
            at::tensor(options.learning_rates, at::kFloat).repeat_interleave(classes).unsqueeze(0).contiguous()),
        weight_(at::zeros({dimensions, rates_ * classes}, at::kFloat)),
        bias_(at::zeros({1, rates_ * classes}, at::kFloat)),
        weight_momentum_(at::zeros_like(weight_)),
        bias_momentum_(at::zeros_like(bias_)) {}

  // [B, rates, classes]
  at::Tensor Logits(const at::Tensor& rows) const {
    return at::addmm(bias_, rows, weight_).view({rows.size(0), rates_, classes_});
  }

  // One update on a batch with `scale` times the learning rates.
  void Step(const at::Tensor& rows, const at::Tensor& labels, double scale) {
    const at::Tensor errors = at::softmax(Logits(rows), 2);
    // Minus one where the right class is, without a matrix of all classes.
    errors
        .scatter_add_(2, labels.view({-1, 1, 1}).expand({-1, rates_, 1}), minus_one_.expand({rows.size(0), rates_, 1}))
        .div_(static_cast<double>(rows.size(0)));
    const at::Tensor flat = errors.view({rows.size(0), rates_ * classes_});
    at::Tensor weight_gradient = rows.t().mm(flat);
    if (weight_decay_ != 0.0) weight_gradient.add_(weight_, weight_decay_);
    const at::Tensor steps = learning_rates_.mul(scale);
    Update(weight_gradient, steps, &weight_momentum_, &weight_);
    Update(flat.sum(0, /*keepdim=*/true), steps, &bias_momentum_, &bias_);
  }

  // [rates] bool
  at::Tensor Finite() const {
    return at::isfinite(weight_)
        .all(0)
        .view({rates_, classes_})
        .all(1)
        .logical_and(at::isfinite(bias_).view({rates_, classes_}).all(1));
  }

 private:
  // torch.optim.SGD with nesterov=True.
  void Update(at::Tensor gradient, const at::Tensor& steps, at::Tensor* momentum, at::Tensor* value) const {
    momentum->mul_(momentum_).add_(gradient);
    value->sub_(gradient.add_(*momentum, momentum_).mul_(steps));
  }

  const int64_t rates_;
  const int64_t classes_;
  const double momentum_;
  const double weight_decay_;
  const at::Tensor learning_rates_;  // [1, rates * classes]
  const at::Tensor minus_one_ = at::full({1, 1, 1}, -1.0, at::kFloat);
  at::Tensor weight_;  // [D, rates * classes]
  at::Tensor bias_;    // [1, rates * classes]
  at::Tensor weight_momentum_;
  at::Tensor bias_momentum_;
};

absl::Status CheckShapes(const at::Tensor& train, const at::Tensor& train_labels, const at::Tensor& test,
                         const at::Tensor& test_labels) {
  const bool fit = train.dim() == 2 && test.dim() == 2 && train.size(1) == test.size(1) && train.size(0) >= 2 &&
                   train_labels.numel() == train.size(0) && test_labels.numel() == test.size(0);
  if (fit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("linear probe: training features are [", absl::StrJoin(train.sizes(), ", "), "] with ",
                   train_labels.numel(), " labels, test features [", absl::StrJoin(test.sizes(), ", "), "] with ",
                   test_labels.numel(), " labels; expected [N, D] with N >= 2 and [M, D] with M"));
}

// Hits of every rate among the first 1 and 5 classes, as fractions: [2, rates] double. positions: rows to look at.
at::Tensor Accuracies(const Classifiers& classifiers, const Standardizer& standardizer, const at::Tensor& features,
                      const at::Tensor& labels, const at::Tensor& positions) {
  at::Tensor hits;
  for (int64_t begin = 0; begin < positions.size(0); begin += kPiece) {
    const at::Tensor piece = positions.slice(0, begin, begin + kPiece);
    const at::Tensor logits = classifiers.Logits(standardizer.Apply(features.index_select(0, piece)));
    const int64_t top = std::min<int64_t>(5, logits.size(2));
    const at::Tensor ranked = std::get<1>(logits.topk(top, 2));  // [B, rates, top]
    const at::Tensor right = ranked.eq(labels.index_select(0, piece).view({-1, 1, 1})).to(at::kDouble);
    const at::Tensor sums = at::stack({right.select(2, 0).sum(0), right.sum(2).sum(0)});
    hits = hits.defined() ? hits.add(sums) : sums;
  }
  return hits.div(static_cast<double>(positions.size(0)));
}

// What classifiers are trained on.
struct TrainingSet {
  at::Tensor features;   // [N, D]
  at::Tensor labels;     // [N]
  at::Tensor positions;  // rows that count
  int64_t classes = 0;
};

// Classifiers, and what their features go through first.
struct Probe {
  Standardizer standardizer;
  Classifiers classifiers;
};

// The learning rates' factor falls from 1 to 0 along a cosine. first_epoch: for the progress.
absl::StatusOr<Probe> Train(const TrainingSet& set, const LinearProbeOptions& options, int64_t first_epoch,
                            const StopToken& stop, at::Generator generator) {
  Probe probe{options.normalize ? Standardizer::Of(set.features, set.positions) : Standardizer(),
              Classifiers(set.features.size(1), set.classes, options)};
  const int64_t samples = set.positions.size(0);
  const int64_t batches = (samples + options.batch_size - 1) / options.batch_size;
  const double updates = static_cast<double>(options.num_epochs * batches);
  for (int64_t epoch = 0; epoch < options.num_epochs; ++epoch) {
    const at::Tensor order = set.positions.index_select(0, at::randperm(samples, generator, at::kLong));
    for (int64_t batch = 0; batch < batches; ++batch) {
      if (stop.requested()) return absl::CancelledError("linear probe: stopped");
      const at::Tensor piece = order.slice(0, batch * options.batch_size, (batch + 1) * options.batch_size);
      const double scale = 0.5 * (1.0 + std::cos(M_PI * static_cast<double>(epoch * batches + batch) / updates));
      probe.classifiers.Step(probe.standardizer.Apply(set.features.index_select(0, piece)),
                             set.labels.index_select(0, piece), scale);
    }
    if (options.on_progress) options.on_progress(first_epoch + epoch + 1);
  }
  return probe;
}

absl::StatusOr<LinearProbeResult> ChooseRate(const LinearProbeOptions& options, const at::Tensor& finite,
                                             const at::Tensor& held_out) {
  LinearProbeResult result;
  double best = -1.0;
  for (size_t i = 0; i < options.learning_rates.size(); ++i) {
    const int64_t rate = static_cast<int64_t>(i);
    const double top1 = held_out[rate].item<double>();
    result.rates.push_back({options.learning_rates[i], top1, !finite[rate].item<bool>()});
    if (result.rates.back().diverged || top1 <= best) continue;
    best = top1;
    result.best = i;
  }
  if (best < 0.0) {
    return absl::InternalError(absl::StrCat("linear probe: all learning rates diverged: ",
                                            absl::StrJoin(options.learning_rates, ", "), "; give smaller ones"));
  }
  return result;
}

}  // namespace

absl::StatusOr<LinearProbeResult> TrainLinearProbe(const at::Tensor& train, const at::Tensor& train_labels,
                                                   const at::Tensor& test, const at::Tensor& test_labels,
                                                   const LinearProbeOptions& options, const StopToken& stop) {
  SSL_RETURN_IF_ERROR(CheckShapes(train, train_labels, test, test_labels));
  const at::NoGradGuard no_grad;
  const int64_t samples = train.size(0);
  // One classifier for each class that occurs: numbers with gaps, such as those of a file, cost nothing.
  const auto [numbers, classes] =
      at::_unique(at::cat({train_labels, test_labels}), /*sorted=*/true, /*return_inverse=*/true);
  const at::Tensor train_classes = classes.slice(0, 0, samples);
  const at::Tensor test_classes = classes.slice(0, samples);
  const int64_t held_out_samples =
      std::clamp<int64_t>(std::llround(static_cast<double>(samples) * options.held_out_fraction), 1, samples - 1);
  const at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options.seed));
  const at::Tensor order = at::randperm(samples, generator, at::kLong);
  const at::Tensor held_out = order.slice(0, 0, held_out_samples);
  TrainingSet set{train, train_classes, order.slice(0, held_out_samples), numbers.size(0)};

  SSL_ASSIGN_OR_RETURN(const Probe trial, Train(set, options, 0, stop, generator));
  const at::Tensor held_out_accuracy =
      Accuracies(trial.classifiers, trial.standardizer, train, train_classes, held_out);
  SSL_ASSIGN_OR_RETURN(LinearProbeResult result, ChooseRate(options, trial.classifiers.Finite(), held_out_accuracy[0]));

  // The held out samples have done their work: the classifier that counts learns from them as well.
  set.positions = order;
  LinearProbeOptions chosen = options;
  chosen.learning_rates = {options.learning_rates[result.best]};
  SSL_ASSIGN_OR_RETURN(const Probe tested, Train(set, chosen, options.num_epochs, stop, generator));
  if (!tested.classifiers.Finite()[0].item<bool>()) {
    return absl::InternalError(absl::StrCat("linear probe: learning rate ", chosen.learning_rates[0],
                                            " diverged on all samples, though not on those of the trial; give smaller "
                                            "ones"));
  }
  const at::Tensor all = at::arange(test.size(0), at::kLong);
  const at::Tensor accuracy = Accuracies(tested.classifiers, tested.standardizer, test, test_classes, all);
  result.top1 = accuracy[0][0].item<double>();
  result.top5 = accuracy[1][0].item<double>();
  return result;
}

}  // namespace ssl
