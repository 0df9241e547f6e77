// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/sync_batch_norm.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <tuple>
#include <utility>
#include <vector>

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What backward needs besides tensors.
struct Shared : public torch::CustomClassHolder {
  Shared(std::shared_ptr<Communicator> ranks, double layer_eps) : group(std::move(ranks)), eps(layer_eps) {}

  const std::shared_ptr<Communicator> group;
  const double eps;
};

// Of a value per channel, what broadcasts against the map, in the format in which its operators compute.
at::Tensor AlongChannels(const at::Tensor& values, const at::Tensor& map) {
  std::vector<int64_t> shape(static_cast<size_t>(map.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape).to(at::toOpMathType(map.scalar_type()));
}

// dx = a g + b x + d, one coefficient per channel (batch_norm_relu.cc derives them). sums: of g and of g (x - mean),
// over the values of all ranks.
at::Tensor InputGradient(const at::Tensor& g, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& mean,
                         const at::Tensor& invstd, const at::Tensor& sums, const at::Tensor& count) {
  const at::Tensor a = weight.to(at::kDouble) * invstd;
  const at::Tensor b = -a * invstd.square() * sums[1] / count;
  const at::Tensor d = -a * sums[0] / count - b * mean.to(at::kDouble);
  return at::addcmul(AlongChannels(d, x), x, AlongChannels(b, x)).addcmul_(g, AlongChannels(a, x)).to(x.scalar_type());
}

struct NormalizeFunction : public torch::autograd::Function<NormalizeFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const ChannelMoments& moments,
                            const c10::intrusive_ptr<Shared>& shared) {
    const at::ScalarType type = at::toOpMathType(input.scalar_type());
    const at::Tensor mean = moments.mean.to(type);
    const at::Tensor variance = moments.variance.to(type);
    context->save_for_backward({input, weight, mean, variance, moments.count});
    context->saved_data["shared"] = c10::IValue::make_capsule(shared);
    if (input.numel() == 0) return at::empty_like(input);  // LibTorch's operator divides by the number of values
    // "Evaluation" is what normalises by given moments.
    return std::get<0>(
        at::native_batch_norm(input, weight, bias, mean, variance, /*training=*/false, /*momentum=*/0.0, shared->eps));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& mean = saved[2];
    const at::Tensor& variance = saved[3];
    const auto shared = c10::static_intrusive_pointer_cast<Shared>(context->saved_data["shared"].toCapsule());
    const at::Tensor invstd = (variance.to(at::kDouble) + shared->eps).rsqrt();
    const at::Tensor g = gradients[0].contiguous(x.suggest_memory_format());
    at::Tensor weight_gradient = at::zeros_like(weight);
    at::Tensor bias_gradient = at::zeros_like(weight);
    if (x.numel() > 0) {
      // The kernels of a GPU read what "training" would have saved.
      std::tie(std::ignore, weight_gradient, bias_gradient) =
          at::native_batch_norm_backward(g, x, weight, mean, variance, /*save_mean=*/mean,
                                         /*save_invstd=*/invstd.to(variance.scalar_type()), /*train=*/false,
                                         shared->eps, std::array<bool, 3>{false, true, true});
    }
    // As the fused operation sums: ranks may differ in which of the two they can take.
    const at::Tensor sums = SumOverRanks(
        at::stack({bias_gradient.to(at::kDouble), weight_gradient.to(at::kDouble) / invstd}), *shared->group);
    const at::Tensor input_gradient = InputGradient(g, x, weight, mean, invstd, sums, saved[4]);
    return {input_gradient, weight_gradient, bias_gradient, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor NormalizeOverRanks(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, double eps,
                              const ChannelMoments& moments, const std::shared_ptr<Communicator>& group) {
  return NormalizeFunction::apply(input, weight, bias, moments, c10::make_intrusive<Shared>(group, eps));
}

}  // namespace ssl
