// SPDX-License-Identifier: Apache-2.0
//
// What activation checkpointing saves and costs: a forward and backward pass of a ResNet-50 with 2 crops of 224x224 and
// 6 of 96x96 on this machine's CPU, plain and cut into splits, alternating.
//
//   bazel run //ssl/models:bench_recompute [-- rounds [images [splits...]]]
//
// Memory is the most that tensors of 256 KiB and more hold at once, above what is held before the pass (weights and
// images); processor time is that of all threads, which other programs on the machine disturb less.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "ssl/core/tensor_memory.h"
#include "ssl/models/activation_checkpointing.h"
#include "ssl/models/layers.h"
#include "ssl/models/trunks/resnet.h"

namespace ssl {
namespace {

at::Tensor Images(int64_t count, int64_t size) {
  at::Generator generator = MakeGenerator(1);
  return at::empty({count, 3, size, size}, at::kFloat)
      .normal_(0.0, 1.0, generator)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

struct Cost {
  double peak_mib = 0.0;
  double cpu_ms = 0.0;
};

Cost Measure(Trunk& trunk, const std::vector<at::Tensor>& passes) {
  for (const ModelTensor& tensor : trunk.Tensors()) {
    at::Tensor value = tensor.value;
    if (value.requires_grad()) value.mutable_grad() = at::Tensor();
  }
  ResetTensorMemoryPeak();
  const int64_t before = GetTensorMemory().in_use;
  const std::clock_t start = std::clock();
  at::Tensor loss;
  for (const at::Tensor& images : passes) {
    const at::Tensor part = trunk.Forward(images).pow(2).mean();
    loss = loss.defined() ? loss + part : part;
  }
  loss.backward();
  const double cpu_ms = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return {static_cast<double>(GetTensorMemory().peak - before) / (1 << 20), cpu_ms};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Run(int rounds, int64_t images, const std::vector<int64_t>& splits) {
  InstallTensorMemory();
  ResNetOptions options;
  absl::StatusOr<std::unique_ptr<Trunk>> trunk = MakeResNet(options, /*seed=*/0);
  if (!trunk.ok()) return 1;
  const std::vector<at::Tensor> passes = {Images(2 * images, 224), Images(6 * images, 96)};
  std::vector<std::vector<double>> cpu_ms(splits.size());
  std::vector<double> peak_mib(splits.size());
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    for (size_t i = 0; i < splits.size(); ++i) {
      (*trunk)->SetRecomputed({SplitBlocks((*trunk)->num_blocks(), splits[i])});
      const Cost cost = Measure(**trunk, passes);
      peak_mib[i] = cost.peak_mib;
      if (round >= 0) cpu_ms[i].push_back(cost.cpu_ms);
    }
  }
  for (size_t i = 0; i < splits.size(); ++i) {
    const double time = Median(cpu_ms[i]);
    std::printf("splits %2lld: peak %6.1f MiB (%.2f of the first), processor time %6.0f ms (%.2f of the first)\n",
                static_cast<long long>(splits[i]), peak_mib[i], peak_mib[i] / peak_mib[0], time,
                time / Median(cpu_ms[0]));
  }
  return 0;
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const int64_t images = argc > 2 ? std::max(1, std::atoi(argv[2])) : 2;
  std::vector<int64_t> splits = {1};
  for (int i = 3; i < argc; ++i) splits.push_back(std::max(1, std::atoi(argv[i])));
  if (splits.size() == 1) splits = {1, 2, 4, 6, 9, 18};
  return ssl::Run(rounds, images, splits);
}
