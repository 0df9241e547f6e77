// SPDX-License-Identifier: Apache-2.0
//
// What the reduction of ResNet-50's gradients takes between processes of this machine: an operation for each parameter,
// one after the other, against buckets.
//
//   bazel run //ssl/core:bench_gradient_reduction [number of processes, 2] [MiB of a bucket, 25]
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
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

// The two take turns, so that both meet the same moods of the machine. The first round is not counted.
absl::Status RunRank(const GlooOptions& options, int64_t bucket_mib) {
  at::set_num_threads(1);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
  std::vector<NamedParameter> parameters = MakeParameters();
  GradientReducerOptions reduction;
  reduction.bucket_bytes = bucket_mib << 20;
  GradientReducer reducer(parameters, reduction, *communicator);
  std::vector<double> each_times;
  std::vector<double> bucket_times;
  for (int round = 0; round <= kRounds; ++round) {
    SSL_ASSIGN_OR_RETURN(const double each, Milliseconds(*communicator, parameters,
                                                         [&] { return ReduceEach(parameters, *communicator); }));
    SSL_ASSIGN_OR_RETURN(const double buckets,
                         Milliseconds(*communicator, parameters, [&] { return reducer.Reduce(); }));
    if (round == 0) continue;
    each_times.push_back(each);
    bucket_times.push_back(buckets);
  }
  if (communicator->rank() != 0) return absl::OkStatus();
  const double each = Median(each_times);
  const double buckets = Median(bucket_times);
  std::printf("ResNet-50, %zu parameters, %lld processes, median of %d rounds\n", parameters.size(),
              static_cast<long long>(communicator->size()), kRounds);
  std::printf("an operation for each  %8.1f ms\n", each);
  std::printf("buckets of %3lld MiB     %8.1f ms\n", static_cast<long long>(bucket_mib), buckets);
  std::printf("ratio                  %8.2f\n", each / buckets);
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
