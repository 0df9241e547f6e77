// SPDX-License-Identifier: Apache-2.0
//
// Dynamic activation checkpointing against its forecast: a forward and backward pass of a ResNet-50 with 2 crops of
// 224x224 and 6 of 96x96 on this machine's CPU, plain and under limits, for each strategy, alternating. A limit is a
// part of what a plain step takes above weights and images.
//
//   bazel run //ssl/hooks:bench_memory_planner [-- rounds [images [curves.csv]]]
//
// curves.csv: memory over time of a plain step, of one with four splits, and of one under the lowest limit, for
// tools/plot_memory.py. Memory is that of tensors of 256 KiB and more; processor time is that of all threads.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ssl/core/tensor_memory.h"
#include "ssl/hooks/memory_planner.h"
#include "ssl/models/activation_checkpointing.h"
#include "ssl/models/layers.h"
#include "ssl/models/ssl_model.h"
#include "ssl/models/trunks/resnet.h"

namespace ssl {
namespace {

constexpr int64_t kWarmup = 3;

struct Cost {
  double peak_mib = 0.0;
  double cpu_ms = 0.0;
};

double Mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::vector<at::Tensor> Views(int64_t images) {
  at::Generator generator = MakeGenerator(1);
  std::vector<at::Tensor> views;
  for (const int64_t size : {224, 224, 96, 96, 96, 96, 96, 96}) {
    views.push_back(at::empty({images, 3, size, size}, at::kFloat)
                        .normal_(0.0, 1.0, generator)
                        .contiguous(at::MemoryFormat::ChannelsLast));
  }
  return views;
}

// Above what is held before.
Cost Step(Model& model, const std::vector<at::Tensor>& views) {
  for (NamedParameter& parameter : model.Parameters()) parameter.value.mutable_grad() = at::Tensor();
  ResetTensorMemoryPeak();
  const int64_t before = GetTensorMemory().in_use;
  const std::clock_t start = std::clock();
  const at::Tensor loss = model.Forward(views)[0].pow(2).mean();
  int64_t peak = GetTensorMemory().peak;  // measuring resets it in backward
  loss.backward();
  peak = std::max(peak, GetTensorMemory().peak);
  return {Mebibytes(peak - before), 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC};
}

Cost Median(std::vector<Cost> costs) {
  std::sort(costs.begin(), costs.end(), [](const Cost& left, const Cost& right) { return left.cpu_ms < right.cpu_ms; });
  return costs[costs.size() / 2];
}

// The same parts in every pass.
class StaticPolicy : public RecomputePolicy {
 public:
  explicit StaticPolicy(std::vector<BlockRange> parts) : parts_(std::move(parts)) {}
  std::vector<RecomputePlan> Plan(const std::vector<PassShape>& passes) override {
    return std::vector<RecomputePlan>(passes.size(), RecomputePlan{parts_});
  }

 private:
  const std::vector<BlockRange> parts_;
};

struct Setting {
  std::string name;
  std::unique_ptr<RecomputePolicy> policy;
  const MemoryPlanner* planner = nullptr;  // the policy, when it is one
  std::vector<Cost> costs = {};
};

Setting MakeDynamic(const std::string& name, const Model& model, RecomputeStrategy strategy, int64_t max_bytes) {
  const std::vector<std::string> blocks = model.block_names();
  std::vector<BlockRange> candidates;
  for (size_t i = 0; i < blocks.size(); ++i) candidates.push_back({i, i + 1});
  auto planner =
      std::make_unique<MemoryPlanner>(blocks, candidates, MemoryPlannerOptions{kWarmup, max_bytes, strategy});
  const MemoryPlanner* const view = planner.get();
  return {name, std::move(planner), view};
}

// held: weights and images; plain: what a plain step takes above them.
std::vector<Setting> MakeSettings(const Model& model, int64_t held, const Cost& plain) {
  const auto limit = [&](double share) { return held + static_cast<int64_t>(share * plain.peak_mib * (1 << 20)); };
  std::vector<Setting> settings;
  settings.push_back({"plain", std::make_unique<StaticPolicy>(std::vector<BlockRange>())});
  settings.push_back({"static, 4 splits", std::make_unique<StaticPolicy>(SplitBlocks(model.block_names().size(), 4))});
  settings.push_back(MakeDynamic("no limit", model, RecomputeStrategy::kOptimal, limit(20.0)));
  for (const int percent : {80, 60, 45}) {
    for (const auto& [name, strategy] :
         {std::pair("greedy", RecomputeStrategy::kGreedy), std::pair("memory_time", RecomputeStrategy::kMemoryTime),
          std::pair("optimal", RecomputeStrategy::kOptimal)}) {
      settings.push_back(MakeDynamic(std::string(name) + ", limit 0." + std::to_string(percent), model, strategy,
                                     limit(percent / 100.0)));
    }
  }
  return settings;
}

// Writes "<name>,<milliseconds>,<MiB>" every millisecond of a step.
void WriteCurve(const std::string& name, Model& model, const std::vector<at::Tensor>& views, std::ostream& out) {
  std::atomic<bool> done{false};
  const auto start = std::chrono::steady_clock::now();
  const int64_t before = GetTensorMemory().in_use;
  std::thread sampler([&] {
    while (!done) {
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
      out << "\"" << name << "\"," << time.count() << "," << Mebibytes(GetTensorMemory().in_use - before) << "\n";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  Step(model, views);
  done = true;
  sampler.join();
}

void Print(const Setting& setting, const Cost& plain, int64_t held) {
  const Cost cost = Median(setting.costs);
  std::printf("%-24s peak %6.1f MiB (%.2f), processor time %5.0f ms (%.2f)", setting.name.c_str(), cost.peak_mib,
              cost.peak_mib / plain.peak_mib, cost.cpu_ms, cost.cpu_ms / plain.cpu_ms);
  if (setting.planner != nullptr) {
    const MemoryForecast& forecast = setting.planner->forecast();
    const double peak_mib = Mebibytes(forecast.peak_bytes - held);
    std::printf("; forecast %6.1f MiB (%+.1f %%), %zu parts again for %.0f ms, planned in %.2f ms", peak_mib,
                100.0 * (peak_mib / cost.peak_mib - 1.0), forecast.recomputed.size(), 1e3 * forecast.recompute_seconds,
                1e3 * forecast.planning_seconds);
  }
  std::printf("\n");
}

int Run(int rounds, int64_t images, const std::string& curves) {
  InstallTensorMemory();
  const std::vector<at::Tensor> views = Views(images);
  absl::StatusOr<std::unique_ptr<Trunk>> trunk = MakeResNet(ResNetOptions(), /*seed=*/0);
  if (!trunk.ok()) return 1;
  SslModel model(*std::move(trunk), {}, {});
  const int64_t held = GetTensorMemory().in_use;
  Step(model, views);
  std::vector<Setting> settings = MakeSettings(model, held, Step(model, views));
  for (int64_t round = -kWarmup; round < rounds; ++round) {
    for (Setting& setting : settings) {
      model.SetRecomputePolicy(setting.policy.get());
      const Cost cost = Step(model, views);
      if (round >= 0) setting.costs.push_back(cost);
    }
  }
  const Cost plain = Median(settings[0].costs);
  for (const Setting& setting : settings) Print(setting, plain, held);
  if (curves.empty()) return 0;
  std::ofstream out(curves);
  out << "setting,milliseconds,mebibytes\n";
  for (const size_t i : {size_t{0}, size_t{1}, settings.size() - 1}) {
    model.SetRecomputePolicy(settings[i].policy.get());
    WriteCurve(settings[i].name, model, views, out);
  }
  return out.good() ? 0 : 1;
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const int64_t images = argc > 2 ? std::max(1, std::atoi(argv[2])) : 2;
  return ssl::Run(rounds, images, argc > 3 ? argv[3] : "");
}
