// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/every_nth_pixel.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor Pixels(const at::Tensor& map, int64_t n) {
  return map.slice(2, 0, map.size(2), n).slice(3, 0, map.size(3), n);
}

struct EveryNthPixelFunction : public torch::autograd::Function<EveryNthPixelFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, int64_t n) {
    context->saved_data["sizes"] = input.sizes();
    context->saved_data["n"] = n;
    return Pixels(input, n).clone(at::MemoryFormat::ChannelsLast);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gradient = at::empty(context->saved_data["sizes"].toIntVector(),
                                          gradients[0].options().memory_format(at::MemoryFormat::ChannelsLast));
    gradient.zero_();
    Pixels(gradient, context->saved_data["n"].toInt()).copy_(gradients[0]);
    return {gradient, at::Tensor()};
  }
};

}  // namespace

at::Tensor EveryNthPixel(const at::Tensor& input, int64_t n) { return EveryNthPixelFunction::apply(input, n); }

}  // namespace ssl
