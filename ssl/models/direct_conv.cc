// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/direct_conv.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ssl/core/autocast.h"
#include "ssl/core/parallel_for.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Multiplications of a part: about a millisecond of one thread, to a tenth of which a call of oneDNN comes.
constexpr int64_t kPartMultiplications = int64_t{1} << 27;
constexpr int64_t kFewestParts = 2;
constexpr int64_t kMostParts = 32;

struct Geometry {
  int64_t stride;
  int64_t padding;
};

// Those of the input and the weights, as `wanted`.
std::array<at::Tensor, 2> Gradients(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& gradient,
                                    Geometry geometry, std::array<bool, 2> wanted) {
  const std::array<int64_t, 2> strides = {geometry.stride, geometry.stride};
  const std::array<int64_t, 2> padding = {geometry.padding, geometry.padding};
  constexpr int64_t kOne[] = {1, 1};
  constexpr int64_t kNone[] = {0, 0};
  const auto [of_input, of_weight, of_bias] =
      at::convolution_backward(gradient, input, weight, /*bias_sizes=*/at::nullopt, strides, padding,
                               /*dilation=*/kOne, /*transposed=*/false, /*output_padding=*/kNone, /*groups=*/1,
                               {wanted[0], wanted[1], false});
  return {of_input, of_weight};
}

int64_t NumParts(const at::Tensor& weight, const at::Tensor& gradient) {
  const int64_t multiplications = gradient.numel() * (weight.numel() / weight.size(0));
  const int64_t parts = std::clamp(multiplications / kPartMultiplications, kFewestParts, kMostParts);
  return std::min(parts, gradient.size(0));
}

at::Tensor WeightGradient(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& gradient,
                          Geometry geometry) {
  const int64_t batch = input.size(0);
  std::vector<at::Tensor> sums(static_cast<size_t>(NumParts(weight, gradient)));
  const auto parts = static_cast<int64_t>(sums.size());
  ParallelFor(parts, [&](int64_t first, int64_t last) {
    const at::NoGradGuard no_graph;  // it is a setting of each thread
    const OneThreadScope one_thread;
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = batch * part / parts;
      const int64_t count = batch * (part + 1) / parts - begin;
      sums[part] = Gradients(input.narrow(0, begin, count), weight, gradient.narrow(0, begin, count), geometry,
                             {false, true})[1];
    }
  });
  at::Tensor sum = sums[0].to(at::kFloat);
  for (int64_t part = 1; part < parts; ++part) sum.add_(sums[part]);
  return sum.to(weight.scalar_type());
}

struct DirectConvolution : public torch::autograd::Function<DirectConvolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight, int64_t stride,
                            int64_t padding) {
    context->save_for_backward({input, weight});
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    return at::conv2d(input, weight, /*bias=*/{}, stride, padding);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Geometry geometry = {context->saved_data["stride"].toInt(), context->saved_data["padding"].toInt()};
    const bool needs_input = context->needs_input_grad(0);
    const bool needs_weight = context->needs_input_grad(1);
    // A gradient that is differentiated itself, as a penalty on gradients is: the parts leave no graph behind.
    if (at::GradMode::is_enabled()) {
      const auto [of_input, of_weight] =
          Gradients(saved[0], saved[1], gradients[0], geometry, {needs_input, needs_weight});
      return {of_input, of_weight, at::Tensor(), at::Tensor()};
    }
    const at::Tensor gradient = gradients[0].contiguous(saved[0].suggest_memory_format());
    at::Tensor of_input;
    at::Tensor of_weight;
    if (needs_input) of_input = Gradients(saved[0], saved[1], gradient, geometry, {true, false})[0];
    if (needs_weight) of_weight = WeightGradient(saved[0], saved[1], gradient, geometry);
    return {of_input, of_weight, at::Tensor(), at::Tensor()};
  }
};

bool IsFloatOnCpu(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return tensor.is_cpu() && tensor.dim() == 4 && (type == at::kFloat || type == at::kBFloat16);
}

}  // namespace

bool TakesDirectConv(const at::Tensor& input, const at::Tensor& weight) {
  return IsFloatOnCpu(input) && IsFloatOnCpu(weight) && input.size(0) > 1 && CurrentAutocast() != Autocast::kFloat16 &&
         (CurrentAutocast() == Autocast::kBFloat16 || input.scalar_type() == weight.scalar_type());
}

at::Tensor DirectConv(const at::Tensor& input, const at::Tensor& weight, int64_t stride, int64_t padding) {
  return DirectConvolution::apply(CastByAutocast(input), CastByAutocast(weight), stride, padding);
}

}  // namespace ssl
