// SPDX-License-Identifier: Apache-2.0
//
// The tables of docs/scaling.md: forecasts for 8 to 4,096 ranks and, with `check`, the model beside simulated updates
// of 2 to 64 ranks.
//
//   bazel run //tests/scaling:bench_scaling -- [h100] [images of a rank, 64] [seconds of an image, 0.000892] [syncbn]
//   [check]
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/scaling/clusters.h"
#include "tests/scaling/scaling_model.h"
#include "tests/scaling/simulated_update.h"

namespace ssl {
namespace {

constexpr double kNoise = 0.02;
constexpr double kUpdate = 0.23e-3;  // seconds, on an H100
constexpr int64_t kUpdates = 6;

void PrintForecasts(const NamedCluster& named, const Workload& workload) {
  std::printf(
      "| ranks | update | efficiency | gradients, all | exposed | batch norm | Sinkhorn | control | waiting |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  for (int64_t ranks = 8; ranks <= 4096; ranks *= 2) {
    const UpdateForecast at = ForecastUpdate(named.Of(ranks), workload);
    std::printf("| %ld | %.1f ms | %.1f %% | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", static_cast<long>(ranks),
                1e3 * at.total(), 100.0 * at.compute / at.total(), 1e3 * at.all_gradients, 1e3 * at.gradients,
                1e3 * at.batch_norm, 1e3 * at.sinkhorn, 1e3 * at.control, 1e3 * at.waiting);
  }
}

int PrintCheck(const NamedCluster& named, const Workload& workload) {
  std::printf("| ranks | model | simulated | error |\n|---|---|---|---|\n");
  for (int64_t ranks = 2; ranks <= 64; ranks *= 2) {
    const double model = ForecastUpdate(named.Of(ranks), workload).total();
    const absl::StatusOr<SimulatedUpdate> simulated = SimulateUpdates(named.Of(ranks), workload, kUpdates, 1);
    if (!simulated.ok()) {
      std::fprintf(stderr, "%s\n", simulated.status().ToString().c_str());
      return 1;
    }
    std::printf("| %ld | %.2f ms | %.2f ms | %+.2f %% |\n", static_cast<long>(ranks), 1e3 * model,
                1e3 * simulated->seconds, 100.0 * (model / simulated->seconds - 1.0));
  }
  return 0;
}

int Run(const std::vector<std::string>& words) {
  std::set<std::string> switches;
  std::vector<std::string> values;
  for (const std::string& word : words) {
    if (word == "syncbn" || word == "check") {
      switches.insert(word);
    } else {
      values.push_back(word);
    }
  }
  values.resize(3);
  const std::string name = values[0].empty() ? "h100" : values[0];
  int64_t images = 64;
  double seconds = 0.000892;
  const NamedCluster* named = nullptr;
  for (const NamedCluster& each : NamedClusters()) named = each.name == name ? &each : named;
  if (named == nullptr || (!values[1].empty() && (!absl::SimpleAtoi(values[1], &images) || images < 1)) ||
      (!values[2].empty() && (!absl::SimpleAtod(values[2], &seconds) || seconds <= 0.0))) {
    std::fprintf(stderr, "expected a cluster of tests/scaling/clusters.cc, images of a rank, seconds of an image\n");
    return 2;
  }
  Workload workload = SwavResNet50(images, seconds);
  workload.sync_batch_norm = switches.count("syncbn") > 0;
  workload.update = kUpdate;
  workload.noise = kNoise;
  std::printf("%s, %ld images of a rank, %.2f ms of an image; buckets in MB:", name.c_str(), static_cast<long>(images),
              1e3 * seconds);
  for (const int64_t bytes : BucketBytes(workload)) std::printf(" %.2f", static_cast<double>(bytes) / 1e6);
  std::printf("\n\n");
  if (switches.count("check") > 0) return PrintCheck(*named, workload);
  PrintForecasts(*named, workload);
  return 0;
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) { return ssl::Run({argv + 1, argv + argc}); }
