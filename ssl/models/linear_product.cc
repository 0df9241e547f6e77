// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/linear_product.h"

#include <ATen/Context.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "ssl/core/autocast.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Multiplications below which a call of oneDNN costs more than its kernels save: at 64^3 they lose, at 128^3 they win.
constexpr int64_t kFewestMultiplications = int64_t{1} << 20;

using Scalars = c10::List<std::optional<at::Scalar>>;
using OneDnnSchema = at::Tensor(const at::Tensor& input, const at::Tensor& weight,
                                const std::optional<at::Tensor>& bias, std::string_view attr, Scalars scalars,
                                std::optional<std::string_view> algorithm);
using OneDnnLinear = c10::TypedOperatorHandle<OneDnnSchema>;

// LibTorch has this operator for its compiler; no function of its C++ interface leads to it. Null in a LibTorch that
// was built without oneDNN.
const OneDnnLinear* FindOneDnnLinear() {
  static const auto* const found = [] {
    const auto handle = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    return handle.has_value() ? new OneDnnLinear(handle->typed<OneDnnSchema>()) : nullptr;
  }();
  return found;
}

// oneDNN has fast kernels for a `b` whose rows or columns follow each other in memory; anything else, such as a part of
// a wider matrix, would go to its reference loops, which take a thousand times as long.
at::Tensor WithoutGaps(const at::Tensor& b) { return b.is_contiguous() || b.t().is_contiguous() ? b : b.contiguous(); }

// a b^T + bias.
at::Tensor Multiply(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& bias) {
  return FindOneDnnLinear()->call(a, WithoutGaps(b), bias, /*attr=*/"none", Scalars(), /*algorithm=*/"");
}

struct LinearFunction : public torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({input, weight});
    context->saved_data["has_bias"] = bias.has_value();
    return Multiply(input, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor input_gradient;
    at::Tensor weight_gradient;
    at::Tensor bias_gradient;
    if (context->needs_input_grad(0)) input_gradient = Multiply(gradient, saved[1].t(), std::nullopt);
    if (context->needs_input_grad(1)) weight_gradient = Multiply(gradient.t(), saved[0].t(), std::nullopt);
    if (context->saved_data["has_bias"].toBool()) bias_gradient = gradient.sum(0);
    return {input_gradient, weight_gradient, bias_gradient};
  }
};

bool IsFloatMatrix(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.dim() == 2 && tensor.scalar_type() == at::kFloat;
}

bool TakesOneDnn(const at::Tensor& input, const at::Tensor& weight) {
  return IsFloatMatrix(input) && IsFloatMatrix(weight) && input.size(1) == weight.size(1) &&
         IsLargeProduct(input.size(0), input.size(1), weight.size(0)) && CurrentAutocast() == Autocast::kOff &&
         at::globalContext().userEnabledMkldnn() && FindOneDnnLinear() != nullptr;
}

}  // namespace

bool IsLargeProduct(int64_t rows, int64_t in, int64_t out) { return rows * in * out >= kFewestMultiplications; }

at::Tensor LinearProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  if (!TakesOneDnn(input, weight)) return at::linear(input, weight, bias);
  return LinearFunction::apply(input, weight, bias.defined() ? std::make_optional(bias) : std::nullopt);
}

}  // namespace ssl
