// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a training step goes: milliseconds per step in each kind of operation, without the operations that
// it calls. Processor time of all threads, which other programs on the machine disturb less than the time of the clock,
// and which is the same with one thread (OMP_NUM_THREADS=1) and nobody else.
//
//   bench_step CONFIG [config.KEY=VALUE ...]      such as bench/swav_fmnist_peer config.MODEL.AMP_PARAMS.USE_AMP=True
#include <ATen/record_function.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/io/temporary_directory.h"
#include "ssl/tools/command.h"
#include "ssl/tools/run_files.h"

namespace ssl {
namespace {

constexpr int64_t kWarmUpSteps = 3;
constexpr int64_t kSteps = 10;

using SteadyClock = std::chrono::steady_clock;

double ProcessorMs() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Self times by operation of one thread: that of the step, on which a CPU's backward runs as well.
class Profile {
 public:
  struct Frame : at::ObserverContext {
    double begin_ms = ProcessorMs();
    Frame* parent = nullptr;
    double children_ms = 0.0;
  };

  std::unique_ptr<at::ObserverContext> Enter() {
    auto frame = std::make_unique<Frame>();
    frame->parent = current_;
    current_ = frame.get();
    return frame;
  }

  void Leave(const std::string& name, Frame& frame) {
    const double ms = ProcessorMs() - frame.begin_ms;
    self_ms_[name] += ms - frame.children_ms;
    if (frame.parent != nullptr) frame.parent->children_ms += ms;
    current_ = frame.parent;
  }

  void Reset() { self_ms_.clear(); }
  const std::map<std::string, double>& self_ms() const { return self_ms_; }

 private:
  Frame* current_ = nullptr;
  std::map<std::string, double> self_ms_;
};

Profile& ProcessProfile() {
  static auto* const profile = new Profile();
  return *profile;
}

std::unique_ptr<at::ObserverContext> OnEnter(const at::RecordFunction&) { return ProcessProfile().Enter(); }
void OnLeave(const at::RecordFunction& function, at::ObserverContext* frame) {
  ProcessProfile().Leave(function.name(), *static_cast<Profile::Frame*>(frame));
}

// Kinds of operations, by parts of their names; the first match counts.
const std::vector<std::pair<std::string, std::vector<std::string>>>& Kinds() {
  static const auto* const kinds = new std::vector<std::pair<std::string, std::vector<std::string>>>{
      {"batch norm, ReLU", {"batch_norm", "BatchNorm", "relu", "threshold"}},
      {"convolution", {"convolution", "conv2d", "Convolution"}},
      {"matrix products", {"mm", "linear", "matmul"}},
      {"pooling", {"pool"}},
      {"optimizer", {"_fused_", "_foreach_"}},
      {"copies and casts", {"copy_", "_to_copy", "clone", "contiguous", "cat"}},
      {"other operations", {""}},
  };
  return *kinds;
}

const std::string& KindOf(const std::string& name) {
  for (const auto& [kind, parts] : Kinds()) {
    for (const std::string& part : parts) {
      if (absl::StrContains(name, part)) return kind;
    }
  }
  return Kinds().back().first;
}

void Print(double step_ms, double clock_ms, double data_wait_ms) {
  std::map<std::string, double> by_kind;
  double in_operations = 0.0;
  for (const auto& [name, ms] : ProcessProfile().self_ms()) {
    by_kind[KindOf(name)] += ms / kSteps;
    in_operations += ms / kSteps;
  }
  const auto print = [step_ms](const std::string& what, double ms) {
    std::printf("%-22s %8.1f ms %6.1f%%\n", what.c_str(), ms, 100.0 * ms / step_ms);
  };
  for (const auto& kind : Kinds()) print(kind.first, by_kind[kind.first]);
  print("outside operations", step_ms - in_operations);
  print("step", step_ms);
  std::printf("by the clock %.1f ms, of these waiting for data %.1f ms\n", clock_ms, data_wait_ms);
}

// How long the training thread has waited for batches.
class DataWaitHook : public Hook {
 public:
  explicit DataWaitHook(double* seconds) : seconds_(seconds) {}
  absl::string_view name() const override { return "data_wait"; }
  HookStage stage() const override { return HookStage::kTiming; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  absl::Status OnStep(StepContext& context) override {
    *seconds_ = context.perf_stats.Seconds(StepPart::kReadSample);
    return absl::OkStatus();
  }

 private:
  double* seconds_;
};

absl::Status Run(CommandLine line) {
  // A directory of its own: another one may hold a checkpoint of an earlier run, which this one would go on from.
  SSL_ASSIGN_OR_RETURN(const auto directory, TemporaryDirectory::Make("bench_step"));
  line.tokens.push_back(absl::StrCat("config.CHECKPOINT.DIR=", directory->path()));
  Registries registries;
  SSL_RETURN_IF_ERROR(FillRegistries(line, &registries));
  SSL_ASSIGN_OR_RETURN(const ConfigNode root, ComposeRoot(line, registries));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(*root.Find("config"), registries, {}));
  double waited_s = 0.0;
  SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<DataWaitHook>(&waited_s)));
  for (int64_t step = 0; step < kWarmUpSteps; ++step) SSL_RETURN_IF_ERROR(session->Step().status());
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&OnEnter, &OnLeave));
  waited_s = 0.0;
  const auto begin = SteadyClock::now();
  const double begin_ms = ProcessorMs();
  for (int64_t step = 0; step < kSteps; ++step) SSL_RETURN_IF_ERROR(session->Step().status());
  const double step_ms = (ProcessorMs() - begin_ms) / kSteps;
  const double clock_ms = std::chrono::duration<double, std::milli>(SteadyClock::now() - begin).count() / kSteps;
  at::removeCallback(handle);
  Print(step_ms, clock_ms, 1e3 * waited_s / kSteps);
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_step CONFIG [config.KEY=VALUE ...]\n");
    return 2;
  }
  ssl::InstallTensorMemory();
  ssl::CommandLine line;
  line.tokens.push_back(absl::StrCat("config=", argv[1]));
  line.tokens.insert(line.tokens.end(), argv + 2, argv + argc);
  line.search_dirs.push_back(".");
  line.run_files = ssl::RunFilesDirectory(argv[0]);
  const absl::Status status = ssl::Run(std::move(line));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
