// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds of processor time of 3x3 and 7x7 convolutions in float32, by oneDNN and by Winograd's filtering in turn:
// forward, gradient of the input, gradient of the weight; each the best of several calls.
//
//   OMP_NUM_THREADS=1 bazel run //ssl/models:bench_winograd [-- calls]
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>

#include "ssl/core/tensor_memory.h"
#include "ssl/models/stem_conv.h"
#include "ssl/models/winograd_conv.h"

namespace ssl {
namespace {

struct Shape {
  int64_t batch, in, out, side;
  int64_t stride = 1;
  int64_t taps = 3;  // of a side
};

// Those of one rank of bench/swav_fmnist_peer with a batch of 128, of bench/swav_photos_peer, then of ResNet-18 and
// ResNet-50 on larger photographs, and small ones. Then those with stride 2 of the first three, and the stems of the
// last two.
constexpr Shape kShapes[] = {
    {256, 32, 32, 14},      {512, 32, 32, 8},       {256, 64, 64, 7},       {512, 64, 64, 4},
    {256, 128, 128, 4},     {128, 64, 64, 24},      {256, 64, 64, 12},      {128, 128, 128, 12},
    {256, 128, 128, 6},     {128, 256, 256, 6},     {256, 256, 256, 3},     {128, 512, 512, 3},
    {16, 64, 64, 56},       {16, 128, 128, 28},     {16, 256, 256, 14},     {16, 512, 512, 7},
    {1, 64, 64, 16},        {4, 64, 64, 8},         {4, 128, 128, 8},       {4, 256, 256, 8},
    {512, 32, 64, 8, 2},    {128, 64, 128, 24, 2},  {256, 64, 128, 12, 2},  {128, 128, 256, 12, 2},
    {256, 128, 256, 6, 2},  {128, 256, 512, 6, 2},  {16, 64, 128, 56, 2},   {16, 128, 256, 28, 2},
    {128, 3, 64, 96, 2, 7}, {256, 3, 64, 48, 2, 7}, {16, 3, 64, 224, 2, 7},
};

using Convolution = at::Tensor (*)(const at::Tensor& input, const at::Tensor& weight, int64_t stride);

at::Tensor Direct(const at::Tensor& input, const at::Tensor& weight, int64_t stride) {
  return at::conv2d(input, weight, {}, stride, /*padding=*/weight.size(2) / 2);
}

at::Tensor Filtered(const at::Tensor& input, const at::Tensor& weight, int64_t stride) {
  return weight.size(2) == 3 ? WinogradConv(input, weight, stride) : StemConv(input, weight);
}

double ProcessorMs() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Forward, gradient of the input, gradient of the weight.
using Times = std::array<double, 3>;

Times Measure(Convolution function, int64_t stride, const at::Tensor& input, const at::Tensor& weight,
              const at::Tensor& gradient) {
  const auto convolution = [&](const at::Tensor& maps, const at::Tensor& taps) { return function(maps, taps, stride); };
  const double begin = ProcessorMs();
  const at::Tensor output = convolution(input, weight);
  const double end = ProcessorMs();
  const at::Tensor of_input = convolution(input.detach().requires_grad_(), weight);
  const double before_input = ProcessorMs();
  of_input.backward(gradient);
  const double after_input = ProcessorMs();
  const at::Tensor of_weight = convolution(input, weight.detach().requires_grad_());
  const double before_weight = ProcessorMs();
  of_weight.backward(gradient);
  const double after_weight = ProcessorMs();
  return {end - begin, after_input - before_input, after_weight - before_weight};
}

void Bench(const Shape& shape, int calls) {
  const auto random = [](int64_t n, int64_t c, int64_t h, int64_t w) {
    return at::randn({n, c, h, w}).contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor input = random(shape.batch, shape.in, shape.side, shape.side);
  const at::Tensor weight = random(shape.out, shape.in, shape.taps, shape.taps);
  const int64_t out_side = (shape.side + shape.stride - 1) / shape.stride;
  const at::Tensor gradient = random(shape.batch, shape.out, out_side, out_side);
  constexpr Convolution kConvolutions[] = {&Direct, &Filtered};
  constexpr double kLargest = std::numeric_limits<double>::max();
  std::array<Times, 2> best = {{{kLargest, kLargest, kLargest}, {kLargest, kLargest, kLargest}}};
  for (int call = 0; call < calls; ++call) {
    for (size_t i = 0; i < best.size(); ++i) {
      const Times times = Measure(kConvolutions[i], shape.stride, input, weight, gradient);
      for (size_t pass = 0; pass < times.size(); ++pass) best[i][pass] = std::min(best[i][pass], times[pass]);
    }
  }
  std::printf("%4ld x %3ld -> %3ld x %2ld^2 / %ld ", shape.batch, shape.in, shape.out, shape.side, shape.stride);
  for (size_t pass = 0; pass < 3; ++pass) {
    std::printf("  %7.3f %7.3f (%.2f)", best[0][pass], best[1][pass], best[0][pass] / best[1][pass]);
  }
  const double flop = 2.0 * shape.taps * shape.taps * shape.batch * shape.in * shape.out * out_side * out_side;
  std::printf("   %.0f GFLOP/s\n", flop / best[0][0] / 1e6);
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  ssl::InstallTensorMemory();
  const int calls = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  std::printf(
      "batch, channels, side, stride;  forward, gradient of the input, of the weight: oneDNN, Winograd, ratio\n");
  for (const ssl::Shape& shape : ssl::kShapes) ssl::Bench(shape, calls);
  return 0;
}
