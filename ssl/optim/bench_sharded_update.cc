// SPDX-License-Identifier: Apache-2.0
//
// What a rank saves, and an update costs, when processes of this machine share the work of an optimizer on ResNet-50's
// parameters. Gradients are there already: their reduction is the same with and without.
//
//   bazel run //ssl/optim:bench_sharded_update sgd|adamw whole|shared [number of processes, 2]
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/sharded_optimizer.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/testing/resnet50_shapes.h"
#include "ssl/distributed/gloo_communicator.h"
#include "ssl/distributed/testing/bench_world.h"
#include "ssl/optim/adam.h"
#include "ssl/optim/sgd.h"

namespace ssl {
namespace {

constexpr int kUpdates = 11;
constexpr double kMib = 1024.0 * 1024.0;

struct Variant {
  bool is_adamw = false;
  bool shares = false;
};

ParameterGroup MakeGroup() {
  ParameterGroup group;
  group.learning_rate = 1e-3;
  group.weight_decay = 1e-4;
  for (const std::vector<int64_t>& shape : ResNet50Shapes()) {
    at::Tensor parameter = at::full(shape, 1, at::kFloat).set_requires_grad(true);
    parameter.mutable_grad() = at::full(shape, 0.5, at::kFloat);
    group.names.push_back(absl::StrCat("p", group.names.size()));
    group.parameters.push_back(std::move(parameter));
  }
  return group;
}

// Resident memory of this process.
double ResidentMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) / 1024.0;
  }
  return 0.0;
}

absl::StatusOr<double> StateMib(Optimizer& optimizer) {
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(optimizer));
  double bytes = 0;
  for (const NamedTensor& entry : state) bytes += static_cast<double>(entry.tensor.nbytes());
  return bytes / kMib;
}

// The first update, which makes what is kept, is not timed.
absl::Status RunRank(const GlooOptions& options, const Variant& variant) {
  at::set_num_threads(1);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
  absl::StatusOr<std::unique_ptr<Optimizer>> made = variant.is_adamw ? MakeAdamW({}) : MakeSgd({0.9, false});
  SSL_RETURN_IF_ERROR(made.status());
  std::unique_ptr<Optimizer> optimizer = *std::move(made);
  if (variant.shares) optimizer = ShardOptimizer(std::move(optimizer), *communicator);
  SSL_RETURN_IF_ERROR(optimizer->Initialize({MakeGroup()}));
  std::vector<double> times;
  for (int update = 0; update <= kUpdates; ++update) {
    SSL_RETURN_IF_ERROR(communicator->Barrier());
    const absl::Time begin = absl::Now();
    optimizer->Step({});
    SSL_RETURN_IF_ERROR(optimizer->GatherUpdates());
    if (update > 0) times.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
  }
  SSL_ASSIGN_OR_RETURN(const double state, StateMib(*optimizer));
  std::nth_element(times.begin(), times.begin() + kUpdates / 2, times.end());
  std::printf("%s, %s: rank %lld of %lld: state %6.1f MiB, resident %6.1f MiB, update %6.1f ms\n",
              variant.is_adamw ? "AdamW" : "SGD", variant.shares ? "shared" : "whole",
              static_cast<long long>(communicator->rank()), static_cast<long long>(communicator->size()), state,
              ResidentMib(), times[kUpdates / 2]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  const std::string optimizer = argc > 1 ? argv[1] : "";
  const std::string state = argc > 2 ? argv[2] : "";
  int64_t size = 2;
  if ((optimizer != "sgd" && optimizer != "adamw") || (state != "whole" && state != "shared") ||
      (argc > 3 && (!absl::SimpleAtoi(argv[3], &size) || size < 1))) {
    std::fprintf(stderr, "expected sgd or adamw, whole or shared, and the number of processes, 1 or more\n");
    return 2;
  }
  const ssl::Variant variant = {optimizer == "adamw", state == "shared"};
  return ssl::RunForkedRanks(size, [&](const ssl::GlooOptions& options) { return ssl::RunRank(options, variant); });
}
