// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds of processor time of 3x3 and 7x7 convolutions in float32, by oneDNN and by Winograd's filtering in turn:
// forward, gradient of the input, gradient of the weight; each the best of several calls. "errors" prints the errors of
// both against the convolution in float64 instead: root mean squares, relative to that of the exact result, over maps
// as behind a ReLU and over maps of mean 0.
//
//   OMP_NUM_THREADS=1 bazel run //ssl/models:bench_winograd [-- calls | errors]
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

int64_t OutputSide(const Shape& shape) { return (shape.side + shape.stride - 1) / shape.stride; }

at::Tensor Random(int64_t batch, int64_t channels, int64_t side) {
  return at::randn({batch, channels, side, side}).contiguous(at::MemoryFormat::ChannelsLast);
}

void PrintShape(const Shape& shape) {
  std::printf("%4ld x %3ld -> %3ld x %2ld^2 / %ld ", shape.batch, shape.in, shape.out, shape.side, shape.stride);
}

void Bench(const Shape& shape, int calls) {
  const at::Tensor input = Random(shape.batch, shape.in, shape.side);
  const at::Tensor weight = Random(shape.out, shape.in, shape.taps);
  const int64_t out_side = OutputSide(shape);
  const at::Tensor gradient = Random(shape.batch, shape.out, out_side);
  constexpr Convolution kConvolutions[] = {&Direct, &Filtered};
  constexpr double kLargest = std::numeric_limits<double>::max();
  std::array<Times, 2> best = {{{kLargest, kLargest, kLargest}, {kLargest, kLargest, kLargest}}};
  for (int call = 0; call < calls; ++call) {
    for (size_t i = 0; i < best.size(); ++i) {
      const Times times = Measure(kConvolutions[i], shape.stride, input, weight, gradient);
      for (size_t pass = 0; pass < times.size(); ++pass) best[i][pass] = std::min(best[i][pass], times[pass]);
    }
  }
  PrintShape(shape);
  for (size_t pass = 0; pass < 3; ++pass) {
    std::printf("  %7.3f %7.3f (%.2f)", best[0][pass], best[1][pass], best[0][pass] / best[1][pass]);
  }
  const double flop = 2.0 * shape.taps * shape.taps * shape.batch * shape.in * shape.out * out_side * out_side;
  std::printf("   %.0f GFLOP/s\n", flop / best[0][0] / 1e6);
}

// Output, gradient of the input, gradient of the weight.
using Results = std::array<at::Tensor, 3>;

Results Passes(Convolution function, int64_t stride, const at::Tensor& input, const at::Tensor& weight,
               const at::Tensor& gradient) {
  const at::Tensor maps = input.detach().requires_grad_();
  const at::Tensor taps = weight.detach().requires_grad_();
  const at::Tensor output = function(maps, taps, stride);
  output.backward(gradient);
  return {output.detach(), maps.grad(), taps.grad()};
}

// Root mean square of the error, relative to that of `exact`.
double Error(const at::Tensor& result, const at::Tensor& exact) {
  return result.to(at::kDouble).sub_(exact).norm().item<double>() / exact.norm().item<double>();
}

void PrintErrors(const Shape& shape, bool behind_relu) {
  at::Tensor input = Random(shape.batch, shape.in, shape.side);
  if (behind_relu) input.relu_();
  const at::Tensor weight = Random(shape.out, shape.in, shape.taps);
  const at::Tensor gradient = Random(shape.batch, shape.out, OutputSide(shape));
  const Results exact =
      Passes(&Direct, shape.stride, input.to(at::kDouble), weight.to(at::kDouble), gradient.to(at::kDouble));
  const Results direct = Passes(&Direct, shape.stride, input, weight, gradient);
  const Results filtered = Passes(&Filtered, shape.stride, input, weight, gradient);
  PrintShape(shape);
  std::printf(behind_relu ? "  relu  " : "  mean 0");
  for (size_t pass = 0; pass < exact.size(); ++pass) {
    const double of_direct = Error(direct[pass], exact[pass]);
    const double of_filtered = Error(filtered[pass], exact[pass]);
    std::printf("  %.1e %.1e (%.2f)", of_direct, of_filtered, of_filtered / of_direct);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  ssl::InstallTensorMemory();
  if (argc > 1 && std::strcmp(argv[1], "errors") == 0) {
    std::printf(
        "batch, channels, side, stride;  forward, gradient of the input, of the weight: oneDNN, Winograd, ratio\n");
    for (const ssl::Shape& shape : ssl::kShapes) {
      for (const bool behind_relu : {true, false}) ssl::PrintErrors(shape, behind_relu);
    }
    return 0;
  }
  const int calls = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  std::printf(
      "batch, channels, side, stride;  forward, gradient of the input, of the weight: oneDNN, Winograd, ratio\n");
  for (const ssl::Shape& shape : ssl::kShapes) ssl::Bench(shape, calls);
  return 0;
}
