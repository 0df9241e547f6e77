// SPDX-License-Identifier: Apache-2.0
//
// What the reduction of ResNet-50's gradients takes between processes of this machine: an operation for each parameter,
// one after the other, against buckets, as they are and compressed.
//
//   bazel run //ssl/core:bench_gradient_reduction [number of processes, 2] [MiB of a bucket, 25]
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/core/testing/resnet50_shapes.h"
#include "ssl/distributed/gloo_communicator.h"
#include "ssl/distributed/testing/bench_world.h"

namespace ssl {
namespace {

constexpr int kRounds = 11;

std::vector<NamedParameter> MakeParameters() {
  std::vector<NamedParameter> parameters;
  for (const std::vector<int64_t>& shape : ResNet50Shapes()) {
    parameters.push_back(
        {absl::StrCat("parameter", parameters.size()), at::full(shape, 1, at::kFloat).requires_grad_(true)});
  }
  return parameters;
}

// New tensors, as backward makes them.
void MakeGradients(std::vector<NamedParameter>& parameters) {
  for (NamedParameter& parameter : parameters) {
    parameter.value.mutable_grad() = at::full(parameter.value.sizes(), 1, at::kFloat);
  }
}

absl::Status ReduceEach(std::vector<NamedParameter>& parameters, Communicator& communicator) {
  for (NamedParameter& parameter : parameters) {
    SSL_RETURN_IF_ERROR(communicator.AllReduce(parameter.value.mutable_grad(), ReduceOp::kMean));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Milliseconds(Communicator& communicator, std::vector<NamedParameter>& parameters,
                                    const std::function<absl::Status()>& reduce) {
  MakeGradients(parameters);
  SSL_RETURN_IF_ERROR(communicator.Barrier());
  const absl::Time begin = absl::Now();
  SSL_RETURN_IF_ERROR(reduce());
  return absl::ToDoubleMilliseconds(absl::Now() - begin);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Way {
  const char* name;
  std::function<absl::Status()> reduce;
  double mib;  // that a rank gives to the reductions
  std::vector<double> times = {};
};

// All take turns, so that they meet the same moods of the machine. The first round is not counted.
absl::Status RunRank(const GlooOptions& options, int64_t bucket_mib) {
  at::set_num_threads(1);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
  std::vector<NamedParameter> parameters = MakeParameters();
  const auto reducer = [&](std::optional<at::ScalarType> compression) {
    GradientReducerOptions reduction;
    reduction.bucket_bytes = bucket_mib << 20;
    reduction.compression = compression;
    return std::make_unique<GradientReducer>(parameters, reduction, *communicator);
  };
  const auto plain = reducer(std::nullopt);
  const auto bf16 = reducer(at::kBFloat16);
  const auto fp16 = reducer(at::kHalf);
  double mib = 0.0;
  for (const NamedParameter& parameter : parameters) mib += static_cast<double>(parameter.value.nbytes()) / (1 << 20);
  Way ways[] = {{"an operation for each", [&] { return ReduceEach(parameters, *communicator); }, mib},
                {"buckets", [&] { return plain->Reduce(); }, mib},
                {"buckets in bf16", [&] { return bf16->Reduce(); }, mib / 2},
                {"buckets in fp16", [&] { return fp16->Reduce(); }, mib / 2}};
  for (int round = 0; round <= kRounds; ++round) {
    for (Way& way : ways) {
      SSL_ASSIGN_OR_RETURN(const double time, Milliseconds(*communicator, parameters, way.reduce));
      if (round > 0) way.times.push_back(time);
    }
  }
  if (communicator->rank() != 0) return absl::OkStatus();
  std::printf("ResNet-50, %zu parameters, %lld processes, buckets of %lld MiB, median of %d rounds\n",
              parameters.size(), static_cast<long long>(communicator->size()), static_cast<long long>(bucket_mib),
              kRounds);
  for (const Way& way : ways) std::printf("%-22s %6.1f MiB %8.1f ms\n", way.name, way.mib, Median(way.times));
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  int64_t size = 2;
  int64_t bucket_mib = 25;
  if ((argc > 1 && (!absl::SimpleAtoi(argv[1], &size) || size < 1)) ||
      (argc > 2 && (!absl::SimpleAtoi(argv[2], &bucket_mib) || bucket_mib < 1))) {
    std::fprintf(stderr, "expected the number of processes and the MiB of a bucket, both 1 or more\n");
    return 2;
  }
  return ssl::RunForkedRanks(size, [&](const ssl::GlooOptions& options) { return ssl::RunRank(options, bucket_mib); });
}
