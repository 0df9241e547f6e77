// SPDX-License-Identifier: Apache-2.0
//
// Batch norm with ReLU on a GPU, forward and backward, by the kernel of this program and by LibTorch's operators: maps
// of a ResNet-50 for 256 images of 224, bfloat16. Medians; bytes are those that the kernel has to move.
//
//   bazel run --config=cuda //ssl/models:bench_batch_norm_relu
#include <ATen/core/Tensor.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/randn.h>
#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "ssl/base/torch_guard.h"
#include "ssl/models/batch_norm_relu.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

constexpr int kWarmUps = 3, kRuns = 11;
// Passes over a map: two reads and a write forward; two reads, and two reads and a write backward. With a residual one
// more read forward, and a read and two writes, less a read, more backward.
constexpr double kPasses = 8.0, kPassesWithResidual = 11.0;

struct Case {
  int64_t channels;
  int64_t side;
  bool has_residual;
};

double MedianMs(const std::function<void()>& run) {
  const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
  std::vector<double> times;
  for (int i = 0; i < kWarmUps + kRuns; ++i) {
    guard.synchronizeDevice(0);
    const auto start = std::chrono::steady_clock::now();
    run();
    guard.synchronizeDevice(0);
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (i >= kWarmUps) times.push_back(taken.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

BatchNormLayer LayerOnGpu(int64_t channels) {
  BatchNormLayer layer = MakeBatchNorm(channels, 1e-5, 0.1);
  for (at::Tensor* tensor :
       {&layer.weight, &layer.bias, &layer.running_mean, &layer.running_var, &layer.num_batches_tracked}) {
    *tensor = tensor->detach().to(at::kCUDA);
  }
  layer.weight.requires_grad_();
  layer.bias.requires_grad_();
  return layer;
}

void Measure(const Case& measured) {
  const BatchNormLayer layer = LayerOnGpu(measured.channels);
  const auto map = [&] {
    return at::randn({256, measured.channels, measured.side, measured.side},
                     at::TensorOptions(at::kBFloat16).device(at::kCUDA))
        .contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor input = map().requires_grad_();
  const at::Tensor residual = measured.has_residual ? map().requires_grad_() : at::Tensor();
  const at::Tensor gradient = map();
  const auto pass = [&](const std::function<at::Tensor()>& forward) {
    return MedianMs([&] {
      input.mutable_grad() = at::Tensor();
      if (residual.defined()) residual.mutable_grad() = at::Tensor();
      forward().backward(gradient);
    });
  };
  const double ours = pass([&] { return BatchNormRelu(layer, input, residual, NormMode::kTraining); });
  const double operators = pass([&] {
    at::Tensor output = layer.Forward(input, NormMode::kTraining);
    if (residual.defined()) output.add_(residual);
    return output.relu_();
  });
  const double bytes = 2.0 * static_cast<double>(input.numel()) * (residual.defined() ? kPassesWithResidual : kPasses);
  std::printf("256 x %4ld x %3ld x %3ld%s: %.3f ms, %.0f GB/s; operators %.3f ms, %.2f times\n",
              static_cast<long>(measured.channels), static_cast<long>(measured.side), static_cast<long>(measured.side),
              residual.defined() ? " + residual" : "           ", ours, bytes / ours / 1e6, operators,
              operators / ours);
}

}  // namespace
}  // namespace ssl

int main() {
  const absl::Status status = ssl::GuardTorch("batch norm", [] {
    for (const ssl::Case& measured : {ssl::Case{64, 112, false},
                                      {64, 56, false},
                                      {256, 56, true},
                                      {128, 28, false},
                                      {512, 28, true},
                                      {256, 14, false},
                                      {1024, 14, true},
                                      {512, 7, false},
                                      {2048, 7, true}}) {
      ssl::Measure(measured);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
