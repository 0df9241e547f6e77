// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/normalize_by_kernel.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/kernels/normalize_kernel.h"

namespace ssl {
namespace {

NormalizedType TypeOf(at::ScalarType type) {
  if (type == at::kHalf) return NormalizedType::kHalf;
  return type == at::kBFloat16 ? NormalizedType::kBFloat16 : NormalizedType::kFloat;
}

// The kernel reads four pixels at once; a part of a batch may begin between.
at::Tensor AlignedPixels(const at::Tensor& pixels) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(pixels.const_data_ptr()) % 4 == 0;
  return is_aligned ? pixels : pixels.clone(at::MemoryFormat::Preserve);
}

}  // namespace

bool HasNormalizeKernel(const at::Tensor& pixels) { return pixels.is_cuda(); }

absl::StatusOr<at::Tensor> NormalizeByKernel(const at::Tensor& pixels, absl::Span<const double> mean,
                                             absl::Span<const double> std, at::ScalarType type) {
  const c10::cuda::CUDAGuard guard(pixels.device());
  const at::Tensor input = AlignedPixels(pixels);
  at::Tensor result =
      at::empty(input.sizes(), input.options().dtype(type).memory_format(at::MemoryFormat::ChannelsLast));
  NormalizeLaunch launch;
  launch.pixels = input.const_data_ptr<uint8_t>();
  launch.result = result.mutable_data_ptr();
  launch.type = TypeOf(type);
  launch.values = input.numel();
  launch.channels = static_cast<int>(input.size(1));
  for (int c = 0; c < launch.channels; ++c) {
    const size_t rule = mean.size() == 1 ? 0 : static_cast<size_t>(c);
    launch.mean[c] = static_cast<float>(mean[rule]);
    launch.std[c] = static_cast<float>(std[rule]);
  }
  // Its first launch may lack memory as an allocation does, and is told alike.
  SSL_RETURN_IF_ERROR(GuardTorch("normalising pixels on the GPU", [&] {
    C10_CUDA_CHECK(static_cast<cudaError_t>(LaunchNormalize(launch, c10::cuda::getCurrentCUDAStream().stream())));
    return absl::OkStatus();
  }));
  return result;
}

}  // namespace ssl
