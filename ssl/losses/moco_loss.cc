// SPDX-License-Identifier: Apache-2.0
#include "ssl/losses/moco_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/losses/scores.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::string ShapeOf(const at::Tensor& tensor) { return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]"); }

absl::Status CheckShapes(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& queue) {
  const bool fits = query.dim() == 2 && query.size(0) > 0 && keys.sizes() == query.sizes() && queue.dim() == 2 &&
                    queue.size(1) == query.size(1);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("queries have shape ", ShapeOf(query), ", keys ", ShapeOf(keys),
                                                 " and the queue ", ShapeOf(queue),
                                                 ", expected [B, D], [B, D], [K, D]"));
}

// [B, 1 + K]: the similarity of each query with its key, then with the queue, over the temperature.
at::Tensor Logits(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& queue, double temperature) {
  const at::Tensor scaled = query / temperature;
  at::Tensor logits = at::empty({query.size(0), 1 + queue.size(0)}, query.options());
  logits.select(1, 0).copy_((scaled * keys).sum(1));
  at::Tensor negatives = logits.narrow(1, 1, queue.size(0));
  at::mm_out(negatives, scaled, queue.t());  // in float32: autocast leaves out= variants alone
  return logits;
}

// The gradient of a query is the mean of all keys by their probabilities, less its own key.
at::Tensor QueryGradient(const at::Tensor& probabilities, const at::Tensor& keys, const at::Tensor& queue,
                         double temperature) {
  at::Tensor gradient = at::empty_like(keys);
  at::mm_out(gradient, probabilities.narrow(1, 1, queue.size(0)), queue);
  gradient.addcmul_(keys, probabilities.narrow(1, 0, 1) - 1);
  return gradient.div_(static_cast<double>(keys.size(0)) * temperature);
}

// query: [B, D] of unit length. gradient: where to put the query's gradient, or null.
at::Tensor LossOf(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& queue, double temperature,
                  at::Tensor* gradient) {
  const at::Tensor log_probabilities = at::log_softmax(Logits(query, keys, queue, temperature), 1);
  const at::Tensor loss = log_probabilities.select(1, 0).mean().neg();
  if (gradient != nullptr) *gradient = QueryGradient(log_probabilities.exp_(), keys, queue, temperature);
  return loss;
}

struct MocoLossFunction : public torch::autograd::Function<MocoLossFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& keys,
                            const at::Tensor& queue, double temperature) {
    at::Tensor gradient;
    const at::Tensor loss = LossOf(query, keys, queue, temperature, &gradient);
    context->save_for_backward({gradient});
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {context->get_saved_variables()[0] * gradients[0], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

absl::StatusOr<at::Tensor> MocoLoss(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& queue,
                                    double temperature) {
  SSL_RETURN_IF_ERROR(CheckShapes(query, keys, queue));
  const at::Tensor unit = UnitRows(query.to(at::kFloat));
  if (!unit.requires_grad()) return LossOf(unit, keys, queue, temperature, /*gradient=*/nullptr);
  return MocoLossFunction::apply(unit, keys, queue, temperature);
}

}  // namespace ssl
