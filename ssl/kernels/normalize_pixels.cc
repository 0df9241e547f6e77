// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/normalize_pixels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/kernels/normalize_by_kernel.h"
#include "ssl/kernels/pixel_arithmetic.h"

namespace ssl {
namespace {

// Pixels that a thread writes at least.
constexpr int64_t kGrain = 1 << 14;

absl::Status CheckArguments(const at::Tensor& pixels, absl::Span<const double> mean, absl::Span<const double> std,
                            at::ScalarType type) {
  if (pixels.scalar_type() != at::kByte || pixels.dim() != 4 || (pixels.size(1) != 1 && pixels.size(1) != 3)) {
    return absl::InvalidArgumentError(absl::StrCat("pixels are ", c10::toString(pixels.scalar_type()), " [",
                                                   absl::StrJoin(pixels.sizes(), ", "),
                                                   "], expected Byte [B, 1 or 3, H, W]"));
  }
  const size_t channels = static_cast<size_t>(pixels.size(1));
  if (mean.size() != std.size() || (mean.size() != 1 && mean.size() != channels)) {
    return absl::InvalidArgumentError(absl::StrCat("mean has ", mean.size(), " values and std ", std.size(),
                                                   ", expected 1 or ", channels, ", equally many in both"));
  }
  if (type != at::kFloat && type != at::kHalf && type != at::kBFloat16) {
    return absl::InvalidArgumentError(
        absl::StrCat("normalised pixels of type ", c10::toString(type), ", expected Float, Half or BFloat16"));
  }
  return absl::OkStatus();
}

// One value stands for all channels.
float ValueOf(absl::Span<const double> values, int64_t channel) {
  return static_cast<float>(values[values.size() == 1 ? 0 : static_cast<size_t>(channel)]);
}

template <int kChannels>
struct PixelValues {
  PixelValues(absl::Span<const double> mean, absl::Span<const double> std) {
    for (int c = 0; c < kChannels; ++c) {
      for (int pixel = 0; pixel < 256; ++pixel) {
        values[c][pixel] = NormalizedPixel(pixel, ValueOf(mean, c), ValueOf(std, c));
      }
    }
  }
  float values[kChannels][256];
};

// Interleaved pixels [begin, end). Two divisions a value cost more than a look into a table of 3 KB.
template <int kChannels>
void LookUpPixels(const PixelValues<kChannels>& table, const uint8_t* pixels, int64_t begin, int64_t end,
                  float* __restrict floats) {
  for (int64_t i = begin * kChannels; i < end * kChannels; i += kChannels) {
    for (int c = 0; c < kChannels; ++c) floats[i + c] = table.values[c][pixels[i + c]];
  }
}

// pixels: channels-last.
template <int kChannels>
void NormalizeOnHost(const at::Tensor& pixels, absl::Span<const double> mean, absl::Span<const double> std,
                     const at::Tensor& result) {
  const PixelValues<kChannels> table(mean, std);
  const uint8_t* input = pixels.const_data_ptr<uint8_t>();
  float* output = result.mutable_data_ptr<float>();
  at::parallel_for(0, pixels.numel() / kChannels, kGrain,
                   [&](int64_t begin, int64_t end) { LookUpPixels<kChannels>(table, input, begin, end, output); });
}

// Numbers are arguments of the operators, channel by channel: a tensor of them would have to be copied to the device.
void NormalizeByOperators(const at::Tensor& pixels, absl::Span<const double> mean, absl::Span<const double> std,
                          at::Tensor* result) {
  result->copy_(pixels);
  result->div_(255.0);
  if (mean.size() == 1) {
    result->sub_(mean[0]).div_(std[0]);
    return;
  }
  for (int64_t c = 0; c < pixels.size(1); ++c) {
    result->select(1, c).sub_(mean[static_cast<size_t>(c)]).div_(std[static_cast<size_t>(c)]);
  }
}

}  // namespace

absl::StatusOr<at::Tensor> NormalizePixels(const at::Tensor& pixels, absl::Span<const double> mean,
                                           absl::Span<const double> std, at::ScalarType type) {
  SSL_RETURN_IF_ERROR(CheckArguments(pixels, mean, std, type));
  const at::Tensor input = pixels.contiguous(at::MemoryFormat::ChannelsLast);
  if (HasNormalizeKernel(input)) return NormalizeByKernel(input, mean, std, type);
  at::Tensor result =
      at::empty(input.sizes(), input.options().dtype(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
  if (!input.is_cpu()) {
    NormalizeByOperators(input, mean, std, &result);
  } else if (input.size(1) == 1) {
    NormalizeOnHost<1>(input, mean, std, result);
  } else {
    NormalizeOnHost<3>(input, mean, std, result);
  }
  return result.to(type);
}

}  // namespace ssl
