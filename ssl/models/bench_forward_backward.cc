// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds of one forward and backward pass of a small SwAV model on this machine's CPU:
// ResNet-18 at half width, small stem, 2 crops of 28x28 and 4 of 16x16, 256 images.
//
//   bazel run //ssl/models:bench_forward_backward [-- steps [float32|bfloat16]]
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ssl/core/autocast.h"
#include "ssl/models/heads/swav_head.h"
#include "ssl/models/layers.h"
#include "ssl/models/ssl_model.h"
#include "ssl/models/trunks/resnet.h"

namespace ssl {
namespace {

constexpr int64_t kBatchSize = 256;

std::unique_ptr<SslModel> MakeModel() {
  ResNetOptions trunk_options;
  trunk_options.depth = 18;
  trunk_options.width_multiplier = 0.5;
  trunk_options.stem = "small";
  SwavHeadOptions head_options;
  head_options.dims = {256, 256, 128};
  head_options.use_bn = true;
  head_options.num_clusters = {200};
  auto trunk = MakeResNet(trunk_options, /*seed=*/0);
  auto head = MakeSwavHead(head_options, HeadSection(), /*seed=*/0);
  if (!trunk.ok() || !head.ok()) return nullptr;
  std::vector<std::unique_ptr<Head>> heads;
  heads.push_back(*std::move(head));
  return std::make_unique<SslModel>(*std::move(trunk), std::move(heads), SslModelOptions());
}

std::vector<at::Tensor> MakeViews() {
  at::Generator generator = MakeGenerator(1);
  std::vector<at::Tensor> views;
  for (const int64_t size : {28, 28, 16, 16, 16, 16}) {
    views.push_back(at::empty({kBatchSize, 3, size, size}, at::kFloat)
                        .normal_(0.0, 1.0, generator)
                        .contiguous(at::MemoryFormat::ChannelsLast));
  }
  return views;
}

// Wall-clock time, and the processor time of all threads, which other programs on the machine disturb less.
struct Instant {
  std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
  std::clock_t cpu = std::clock();
};

struct Interval {
  double wall_ms = 0.0;
  double cpu_ms = 0.0;
};

Interval Between(const Instant& from, const Instant& to) {
  return {std::chrono::duration<double, std::milli>(to.wall - from.wall).count(),
          1e3 * static_cast<double>(to.cpu - from.cpu) / CLOCKS_PER_SEC};
}

// The interval of median processor time.
Interval Median(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& left, const Interval& right) { return left.cpu_ms < right.cpu_ms; });
  return intervals[intervals.size() / 2];
}

void Measure(const char* name, bool bfloat16, int steps) {
  const std::unique_ptr<SslModel> model = MakeModel();
  const std::vector<at::Tensor> views = MakeViews();
  std::vector<Interval> forward;
  std::vector<Interval> backward;
  for (int step = 0; step < steps + 2; ++step) {
    for (NamedParameter& parameter : model->Parameters()) parameter.value.mutable_grad() = at::Tensor();
    const Instant start;
    at::Tensor loss;
    {
      const AutocastScope autocast(bfloat16 ? Autocast::kBFloat16 : Autocast::kOff);
      loss = model->Forward(views)[1].pow(2).mean();
    }
    const Instant middle;
    loss.backward();
    const Instant end;
    if (step < 2) continue;  // warm-up
    forward.push_back(Between(start, middle));
    backward.push_back(Between(middle, end));
  }
  const Interval f = Median(forward);
  const Interval b = Median(backward);
  std::printf("%-16s forward %.0f + backward %.0f = %.0f ms; processor time %.0f + %.0f = %.0f ms (%d threads)\n", name,
              f.wall_ms, b.wall_ms, f.wall_ms + b.wall_ms, f.cpu_ms, b.cpu_ms, f.cpu_ms + b.cpu_ms,
              at::get_num_threads());
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const std::string only = argc > 2 ? argv[2] : "";
  if (only != "bfloat16") ssl::Measure("float32", /*bfloat16=*/false, steps);
  if (only != "float32") ssl::Measure("bfloat16", /*bfloat16=*/true, steps);
  return 0;
}
