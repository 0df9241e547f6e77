// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/scale_by_kernel.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>

#include "ssl/kernels/same_layout.h"
#include "ssl/kernels/scale_kernel.h"

namespace ssl {

bool HasScaleKernel(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
                    const at::Tensor& rates) {
  if (!rates.is_cuda() || rates.scalar_type() != at::kFloat || !rates.is_contiguous()) return false;
  const auto is_whole = [&](const at::Tensor& tensor) {
    return tensor.device() == rates.device() && tensor.scalar_type() == at::kFloat &&
           tensor.is_non_overlapping_and_dense();
  };
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!is_whole(gradients[i])) return false;
    if (!is_whole(parameters[i]) || !SameLayout(parameters[i], gradients[i])) return false;
  }
  return true;
}

void ScaleByKernel(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
                   double weight_decay, const at::Tensor& rates) {
  const c10::cuda::CUDAGuard device_guard(rates.device());
  for (size_t begin = 0; begin < gradients.size(); begin += ScaleLaunch::kMostTensors) {
    ScaleLaunch launch;
    launch.rates = rates.const_data_ptr<float>() + begin;
    launch.weight_decay = static_cast<float>(weight_decay);
    for (size_t i = begin; i < gradients.size() && !launch.is_full(); ++i) {
      launch.Add({gradients[i].mutable_data_ptr<float>(),
                  weight_decay == 0.0 ? nullptr : parameters[i].const_data_ptr<float>(), gradients[i].numel()});
    }
    if (launch.chunks() == 0) continue;
    C10_CUDA_CHECK(static_cast<cudaError_t>(LaunchScale(launch, c10::cuda::getCurrentCUDAStream().stream())));
  }
}

}  // namespace ssl
