// SPDX-License-Identifier: Apache-2.0
//
// How long an all-reduce of float32 takes between processes of this machine, with and without the comparison of calls.
//
//   bazel run //ssl/distributed:bench_collectives [number of processes, 2]
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <cstdio>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/gloo_communicator.h"
#include "ssl/distributed/testing/bench_world.h"

namespace ssl {
namespace {

constexpr int64_t kLeastBytes = int64_t{1} << 10;
constexpr int64_t kMostBytes = int64_t{64} << 20;
constexpr absl::Duration kPerSize = absl::Seconds(1);

// The mean of as many calls as fill the time; every rank makes the same number.
absl::StatusOr<absl::Duration> TimeOfAllReduce(Communicator& communicator, int64_t bytes) {
  at::Tensor tensor = at::full({bytes / 4}, 0, at::kFloat);
  const absl::Time first = absl::Now();
  SSL_RETURN_IF_ERROR(communicator.AllReduce(tensor, ReduceOp::kSum));
  at::Tensor calls = at::full({1}, absl::FDivDuration(kPerSize, absl::Now() - first) + 1, at::kDouble);
  SSL_RETURN_IF_ERROR(communicator.Broadcast(calls, 0));
  const auto count = static_cast<int64_t>(calls.item<double>());
  const absl::Time begin = absl::Now();
  for (int64_t call = 0; call < count; ++call) SSL_RETURN_IF_ERROR(communicator.AllReduce(tensor, ReduceOp::kSum));
  return (absl::Now() - begin) / count;
}

absl::Status RunRank(const GlooOptions& given) {
  at::set_num_threads(1);
  GlooOptions options = given;
  options.check_operations = false;
  options.rendezvous.prefix = "unchecked";
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> unchecked, MakeGlooCommunicator(options));
  options.check_operations = true;
  options.rendezvous.prefix = "checked";
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> checked, MakeGlooCommunicator(options));
  const bool prints = options.rendezvous.rank == 0;
  if (prints) std::printf("%10s %14s %9s %14s %9s\n", "bytes", "unchecked us", "GB/s", "checked us", "GB/s");
  for (int64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 4) {
    SSL_ASSIGN_OR_RETURN(const absl::Duration bare, TimeOfAllReduce(*unchecked, bytes));
    SSL_ASSIGN_OR_RETURN(const absl::Duration compared, TimeOfAllReduce(*checked, bytes));
    if (!prints) continue;
    std::printf("%10lld %14.1f %9.3f %14.1f %9.3f\n", static_cast<long long>(bytes), absl::ToDoubleMicroseconds(bare),
                bytes / absl::ToDoubleNanoseconds(bare), absl::ToDoubleMicroseconds(compared),
                bytes / absl::ToDoubleNanoseconds(compared));
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace ssl

int main(int argc, char** argv) {
  int64_t size = 2;
  if (argc > 1 && (!absl::SimpleAtoi(argv[1], &size) || size < 1)) {
    std::fprintf(stderr, "number of processes is %s, expected 1 or more\n", argv[1]);
    return 2;
  }
  return ssl::RunForkedRanks(size, &ssl::RunRank);
}
