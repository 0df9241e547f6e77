// SPDX-License-Identifier: Apache-2.0
//
// What the hooks and sinks of a configuration cost: the time of its training step with them, relative to the same step
// without any but the method's own. Two runs take turns, one step each, so that what else the machine does meets both;
// which comes first changes with each pair. tools/bench/hook_overhead.py reads the pairs of several runs.
//
//   bench_hook_overhead CONFIG [config.KEY=VALUE ...]      such as quickstart, or quickstart
//   +config/hooks=libai_default
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/io/temporary_directory.h"
#include "ssl/tools/command.h"
#include "ssl/tools/run_files.h"

namespace ssl {
namespace {

constexpr int64_t kWarmUpSteps = 10;
constexpr int64_t kSteps = 300;  // a few reports of LOG_FREQUENCY 50, less than an epoch of the quickstart

absl::StatusOr<std::unique_ptr<Session>> MakeSession(const CommandLine& line, bool with_hooks,
                                                     const std::string& directory) {
  Registries registries;
  SSL_RETURN_IF_ERROR(FillRegistries(line, &registries));
  if (!with_hooks) {
    registries.configured_hooks = nullptr;
    registries.configured_sinks = nullptr;
  }
  SSL_ASSIGN_OR_RETURN(const ConfigNode root, ComposeRoot(line, registries));
  ConfigNode config = *root.Find("config");
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  return Session::Create(config, registries, {});
}

absl::StatusOr<double> StepMs(Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  SSL_ASSIGN_OR_RETURN(const bool more, session.Step());
  if (!more) {
    return absl::InvalidArgumentError(
        absl::StrCat("the run is over within ", kWarmUpSteps + kSteps, " iterations, expected a longer one"));
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

absl::Status Run(const CommandLine& line, const std::string& directory) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> plain, MakeSession(line, /*with_hooks=*/false, ""));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> hooked, MakeSession(line, /*with_hooks=*/true, directory));
  std::vector<double> without_ms;
  std::vector<double> with_ms;
  std::vector<double> difference_ms;
  for (int64_t step = 0; step < kWarmUpSteps + kSteps; ++step) {
    const bool hooked_first = step % 2 == 1;
    SSL_ASSIGN_OR_RETURN(const double first, StepMs(hooked_first ? *hooked : *plain));
    SSL_ASSIGN_OR_RETURN(const double second, StepMs(hooked_first ? *plain : *hooked));
    const double with = hooked_first ? first : second;
    const double without = hooked_first ? second : first;
    if (step < kWarmUpSteps) continue;
    std::printf("pair %lld: %.4f ms without hooks, %.4f ms with\n", static_cast<long long>(step - kWarmUpSteps + 1),
                without, with);
    without_ms.push_back(without);
    with_ms.push_back(with);
    difference_ms.push_back(with - without);
  }
  const double step_ms = Median(without_ms);
  std::printf("%lld steps each          without hooks   with hooks\n", static_cast<long long>(kSteps));
  std::printf("median                 %10.3f ms %10.3f ms\n", step_ms, Median(with_ms));
  std::printf("mean, reports included %10.3f ms %10.3f ms\n", Mean(without_ms), Mean(with_ms));
  std::printf("overhead: %.2f %% (median of the differences), %.2f %% (of the means)\n",
              100.0 * Median(difference_ms) / step_ms, 100.0 * (Mean(with_ms) / Mean(without_ms) - 1.0));
  return absl::OkStatus();
}

absl::Status RunInTemporaryDirectory(const CommandLine& line) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryDirectory> directory,
                       TemporaryDirectory::Make("bench_hook_overhead"));
  return Run(line, directory->path());
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_hook_overhead CONFIG [config.KEY=VALUE ...]\n");
    return 2;
  }
  ssl::InstallTensorMemory();
  ssl::CommandLine line;
  line.tokens.push_back(absl::StrCat("config=", argv[1]));
  line.tokens.insert(line.tokens.end(), argv + 2, argv + argc);
  line.search_dirs.push_back(".");
  line.run_files = ssl::RunFilesDirectory(argv[0]);
  const absl::Status status = ssl::RunInTemporaryDirectory(line);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
