// SPDX-License-Identifier: Apache-2.0
#include "tests/scaling/simulated_update.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/losses/sinkhorn.h"

namespace ssl {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

int64_t Smaller(int64_t elements) { return (elements + kSmaller - 1) / kSmaller; }

double Bytes(const at::Tensor& tensor) {
  return static_cast<double>(tensor.numel() * static_cast<int64_t>(tensor.element_size()) * kSmaller);
}

// Of one rank.
struct Clock {
  double now = 0.0;
  std::vector<double> started_bytes;  // of operations that were started
};

// The ranks tell each other when they come; each then knows when it is through. Operations of one communicator follow
// each other; those of a duplicate do not meet them.
class ClockCommunicator : public Communicator {
 public:
  ClockCommunicator(std::unique_ptr<Communicator> owned, Communicator& threads, const Cluster& cluster, Clock& clock)
      : owned_(std::move(owned)), threads_(threads), cluster_(cluster), clock_(clock) {}

  int64_t rank() const override { return threads_.rank(); }
  int64_t size() const override { return threads_.size(); }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override {
    SSL_RETURN_IF_ERROR(Exchange(tensor));
    clock_.now = free_;
    return absl::OkStatus();
  }

  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override {
    clock_.started_bytes.push_back(Bytes(tensor));
    absl::Status status = Exchange(tensor);
    return std::make_unique<Started>(std::move(status), free_, clock_);
  }

  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return NotSimulated("all-gather"); }
  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override { return NotSimulated("broadcast"); }
  absl::Status Barrier() override { return NotSimulated("barrier"); }

  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> duplicate, threads_.Duplicate());
    Communicator& threads = *duplicate;
    return std::make_unique<ClockCommunicator>(std::move(duplicate), threads, cluster_, clock_);
  }

 private:
  class Started : public Work {
   public:
    Started(absl::Status status, double end, Clock& clock) : status_(std::move(status)), end_(end), clock_(clock) {}
    absl::Status Wait() override {
      clock_.now = std::max(clock_.now, end_);
      return status_;
    }

   private:
    const absl::Status status_;
    const double end_;
    Clock& clock_;
  };

  static absl::Status NotSimulated(const char* name) {
    return absl::UnimplementedError(absl::StrCat(name, " has no simulated time"));
  }

  // The end is in free_.
  absl::Status Exchange(const at::Tensor& tensor) {
    const at::Tensor own = at::full({}, std::max(clock_.now, free_), at::kDouble);
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, threads_.AllGather(own));
    const double* begin = all.const_data_ptr<double>();
    free_ = AllReduceEnds(cluster_, {begin, begin + all.numel()}, Bytes(tensor))[rank()];
    return absl::OkStatus();
  }

  const std::unique_ptr<Communicator> owned_;
  Communicator& threads_;
  const Cluster& cluster_;
  Clock& clock_;
  double free_ = 0.0;  // since when nothing is under way
};

// What one rank has while it computes.
struct Rank {
  const Workload& workload;
  ClockCommunicator& communicator;
  Clock& clock;
  std::mt19937_64 random;
  absl::Status status;

  // The mean plus noise of a normal distribution, never negative.
  void Compute(double seconds) {
    std::normal_distribution<double> factor(1.0, workload.noise);
    clock.now += seconds * (workload.noise > 0.0 ? std::max(0.0, factor(random)) : 1.0);
  }

  void Pass(double seconds, int64_t channels) {
    Compute(seconds);
    if (!workload.sync_batch_norm || channels == 0) return;
    at::Tensor moments = at::zeros({Smaller(2 * channels + 1)}, at::kDouble);
    status.Update(communicator.AllReduce(moments, ReduceOp::kSum));
  }
};

// A part's pass: moves the clock forward and, within LibTorch's backward, again.
struct TimedPass : public torch::autograd::Function<TimedPass> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& parameter, Rank* rank,
                            double seconds, int64_t channels) {
    rank->Pass(seconds, channels);
    context->saved_data["rank"] = reinterpret_cast<int64_t>(rank);
    context->saved_data["seconds"] = seconds;
    context->saved_data["channels"] = channels;
    context->save_for_backward({parameter});
    return input.clone();
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    auto* rank = reinterpret_cast<Rank*>(context->saved_data["rank"].toInt());
    rank->Pass(rank->workload.backward * context->saved_data["seconds"].toDouble(),
               context->saved_data["channels"].toInt());
    return {gradients[0], at::zeros_like(context->get_saved_variables()[0]), {}, {}, {}};
  }
};

std::vector<NamedParameter> MakeParameters(const Workload& workload) {
  std::vector<NamedParameter> parameters;
  const auto add = [&](const std::vector<Part>& parts) {
    for (const Part& part : parts) {
      parameters.push_back({absl::StrCat("parameter", parameters.size()),
                            at::zeros({Smaller(part.elements)}, at::kFloat).requires_grad_(true)});
    }
  };
  add(workload.trunk);
  add(workload.head);
  return parameters;
}

at::Tensor Forward(const std::vector<NamedParameter>& parameters, Rank& rank) {
  const std::vector<Part>& trunk = rank.workload.trunk;
  at::Tensor large = at::ones({1});
  for (size_t i = 0; i < trunk.size(); ++i) {
    large = TimedPass::apply(large, parameters[i].value, &rank, trunk[i].large, trunk[i].channels);
  }
  at::Tensor small = at::ones({1});
  for (size_t i = 0; i < trunk.size(); ++i) {
    small = TimedPass::apply(small, parameters[i].value, &rank, trunk[i].small, trunk[i].channels);
  }
  at::Tensor features = large + small;
  for (size_t i = 0; i < rank.workload.head.size(); ++i) {
    const Part& part = rank.workload.head[i];
    features = TimedPass::apply(features, parameters[trunk.size() + i].value, &rank, part.large, part.channels);
  }
  return features.sum();
}

absl::Status AssignCodes(Rank& rank) {
  SinkhornOptions options;
  options.num_iters = rank.workload.sinkhorn_iterations;
  const at::Tensor scores = at::zeros({2, 1, Smaller(rank.workload.prototypes)});
  return SinkhornAssignments(scores, options, rank.communicator).status();
}

absl::Status Update(const std::vector<NamedParameter>& parameters, GradientReducer& reducer, Rank& rank) {
  const at::Tensor loss = Forward(parameters, rank);
  SSL_RETURN_IF_ERROR(AssignCodes(rank));
  SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
  loss.backward();
  SSL_RETURN_IF_ERROR(rank.status);
  SSL_RETURN_IF_ERROR(reducer.Reduce());
  rank.Compute(rank.workload.update);
  for (int operation = 0; operation < 2; ++operation) {  // whether to stop, and what has gone wrong
    at::Tensor control = at::zeros({1});
    SSL_RETURN_IF_ERROR(rank.communicator.AllReduce(control, ReduceOp::kMax));
  }
  return absl::OkStatus();
}

absl::Status RunRank(Communicator& threads, const Cluster& cluster, const Workload& workload, int64_t updates,
                     uint64_t seed, SimulatedUpdate* result) {
  Clock clock;
  ClockCommunicator communicator(nullptr, threads, cluster, clock);
  Rank rank{workload, communicator, clock, std::mt19937_64(seed * 4096 + threads.rank()), absl::OkStatus()};
  const std::vector<NamedParameter> parameters = MakeParameters(workload);
  GradientReducerOptions options;
  options.bucket_bytes = workload.bucket_bytes / kSmaller;
  options.first_bucket_bytes = workload.first_bucket_bytes / kSmaller;
  GradientReducer reducer(parameters, options, communicator);
  for (int64_t update = 0; update < updates; ++update) {
    clock.started_bytes.clear();
    SSL_RETURN_IF_ERROR(Update(parameters, reducer, rank));
  }
  if (threads.rank() == 0) *result = {clock.now / static_cast<double>(updates), clock.started_bytes};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimulatedUpdate> SimulateUpdates(const Cluster& cluster, const Workload& workload, int64_t updates,
                                                uint64_t seed) {
  SimulatedUpdate result;
  ThreadWorld world(cluster.ranks(), absl::Minutes(5));
  SSL_RETURN_IF_ERROR(
      world.Run([&](Communicator& threads) { return RunRank(threads, cluster, workload, updates, seed, &result); }));
  return result;
}

}  // namespace ssl
