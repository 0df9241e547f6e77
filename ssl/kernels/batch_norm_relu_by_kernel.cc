// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/batch_norm_relu_by_kernel.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ssl/kernels/batch_norm_arithmetic.h"
#include "ssl/kernels/batch_norm_relu_kernel.h"
#include "ssl/kernels/batch_norm_relu_passes.h"
#include "ssl/kernels/map_part.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr uintptr_t kAlignment = 16;

std::optional<MapType> TypeOf(const at::Tensor& map) {
  switch (map.scalar_type()) {
    case at::kFloat:
      return MapType::kFloat;
    case at::kHalf:
      return MapType::kHalf;
    case at::kBFloat16:
      return MapType::kBfloat16;
    default:
      return std::nullopt;
  }
}

at::Tensor EmptyFloats(at::IntArrayRef sizes, const at::Tensor& map) {
  return at::empty(sizes, at::TensorOptions(at::kFloat).device(map.device()));
}

// Sets shape and grid, and returns the memory of the sums.
template <typename Launch>
at::Tensor Cut(const at::Tensor& map, Launch* launch) {
  launch->shape.type = *TypeOf(map);
  launch->shape.rows = map.numel() / map.size(1);
  launch->shape.channels = static_cast<int>(map.size(1));
  launch->grid = GridFor(launch->shape, at::cuda::getDeviceProperties(map.device().index())->multiProcessorCount);
  at::Tensor sums = EmptyFloats({MapSumsSize(launch->shape, launch->grid)}, map);
  launch->sums = sums.mutable_data_ptr<float>();
  return sums;
}

// [channels, numbers of each]
template <typename Numbers>
at::Tensor EmptyNumbers(const at::Tensor& map) {
  return EmptyFloats({map.size(1), sizeof(Numbers) / sizeof(float)}, map);
}

bool IsAligned(const at::Tensor& map) { return reinterpret_cast<uintptr_t>(map.const_data_ptr()) % kAlignment == 0; }

void CheckStarted(int error) { C10_CUDA_CHECK(static_cast<cudaError_t>(error)); }

struct BatchNormReluFunction : public torch::autograd::Function<BatchNormReluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& residual,
                            const BatchNormTensors& layer) {
    RECORD_FUNCTION("ssl::batch_norm_relu", std::vector<c10::IValue>());
    const c10::cuda::CUDAGuard device_guard(input.device());
    BatchNormReluLaunch launch;
    const at::Tensor sums = Cut(input, &launch);
    launch.input = input.const_data_ptr();
    launch.residual = residual.has_value() ? residual->const_data_ptr() : nullptr;
    launch.weight = weight.const_data_ptr<float>();
    launch.bias = bias.const_data_ptr<float>();
    if (layer.running_mean.defined()) {
      launch.running_mean = layer.running_mean.mutable_data_ptr<float>();
      launch.running_variance = layer.running_variance.mutable_data_ptr<float>();
      launch.batches = layer.num_batches.mutable_data_ptr<int64_t>();
    }
    launch.momentum = layer.momentum;
    launch.epsilon = layer.epsilon;
    const at::Tensor output = at::empty_like(input);
    launch.output = output.mutable_data_ptr();
    const at::Tensor norms = EmptyNumbers<ChannelNorm>(input);
    launch.norms = static_cast<ChannelNorm*>(norms.mutable_data_ptr());
    CheckStarted(LaunchBatchNormRelu(launch, c10::cuda::getCurrentCUDAStream().stream()));
    context->save_for_backward({input, residual.has_value() ? output : at::Tensor(), weight, norms});
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const bool has_residual = saved[1].defined();
    const c10::cuda::CUDAGuard device_guard(input.device());
    at::Tensor given = gradients[0].to(input.scalar_type()).contiguous(at::MemoryFormat::ChannelsLast);
    if (!IsAligned(given)) given = given.clone();
    BatchNormReluBackwardLaunch launch;
    const at::Tensor sums = Cut(input, &launch);
    launch.input = input.const_data_ptr();
    launch.output_gradient = given.const_data_ptr();
    launch.weight = saved[2].const_data_ptr<float>();
    launch.norms = static_cast<const ChannelNorm*>(saved[3].const_data_ptr());
    const at::Tensor input_gradient = at::empty_like(input);
    launch.input_gradient = input_gradient.mutable_data_ptr();
    at::Tensor residual_gradient;
    if (has_residual) {
      launch.output = saved[1].const_data_ptr();
      residual_gradient = at::empty_like(input);
      launch.residual_gradient = residual_gradient.mutable_data_ptr();
    }
    const at::Tensor of_weight = EmptyFloats({launch.shape.channels}, input);
    const at::Tensor of_bias = EmptyFloats({launch.shape.channels}, input);
    launch.weight_gradient = of_weight.mutable_data_ptr<float>();
    launch.bias_gradient = of_bias.mutable_data_ptr<float>();
    const at::Tensor gradients_of_channels = EmptyNumbers<ChannelGradient>(input);
    launch.gradients = static_cast<ChannelGradient*>(gradients_of_channels.mutable_data_ptr());
    CheckStarted(LaunchBatchNormReluBackward(launch, c10::cuda::getCurrentCUDAStream().stream()));
    return {input_gradient, of_weight, of_bias, residual_gradient, at::Tensor()};
  }
};

}  // namespace

bool HasBatchNormReluKernel(const at::Tensor& map) {
  if (!map.is_cuda() || map.dim() != 4 || map.numel() == 0) return false;
  if (!map.is_contiguous(at::MemoryFormat::ChannelsLast) || !IsAligned(map)) return false;
  const std::optional<MapType> type = TypeOf(map);
  if (!type.has_value() || map.size(1) % MapVector(*type) != 0) return false;
  return map.size(1) <= std::numeric_limits<int>::max();
}

at::Tensor BatchNormReluByKernel(const at::Tensor& input, const at::Tensor& residual, const BatchNormTensors& layer) {
  const std::optional<at::Tensor> added = residual.defined() ? std::make_optional(residual) : std::nullopt;
  return BatchNormReluFunction::apply(input, layer.weight, layer.bias, added, layer);
}

}  // namespace ssl
