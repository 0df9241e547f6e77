// SPDX-License-Identifier: Apache-2.0
//
// Batch norm over ranks, fused with ReLU and alone, against LibTorch's batch norm in float64 on the whole batch.
#include "ssl/models/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/models/batch_norm_relu.h"
#include "ssl/models/layers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint64_t kSeed = 20261122;

// A batch of maps, split over ranks; fused: with ReLU and a residual; side 0: rows without pixels.
struct Case {
  std::vector<int64_t> images;  // of each rank
  int64_t channels = 1;
  int64_t side = 0;
  at::ScalarType type = at::kFloat;
  bool channels_last = true;
  bool fused = false;

  int64_t size() const { return static_cast<int64_t>(images.size()); }
  int64_t begin(int64_t rank) const {
    int64_t first = 0;
    for (int64_t i = 0; i < rank; ++i) first += images[i];
    return first;
  }
};

std::ostream& operator<<(std::ostream& out, const Case& shape) {
  for (const int64_t images : shape.images) out << images << " ";
  return out << "images of " << shape.channels << " channels, " << shape.side << " pixels wide, "
             << at::toString(shape.type) << (shape.fused ? ", fused" : "") << (shape.channels_last ? "" : ", planes");
}

// What all ranks together start from.
struct Whole {
  explicit Whole(const Case& shape) {
    at::Generator generator = MakeGenerator(shape.begin(shape.size()) + 100 * shape.channels + shape.side);
    const auto draw = [&](double mean) {
      std::vector<int64_t> sizes = {shape.begin(shape.size()), shape.channels};
      if (shape.side > 0) sizes.insert(sizes.end(), 2, shape.side);
      const at::Tensor values = at::empty(sizes, at::kDouble).normal_(mean, 1.0, generator).to(shape.type);
      return shape.side > 0 && shape.channels_last ? values.contiguous(at::MemoryFormat::ChannelsLast) : values;
    };
    input = draw(0.5);
    gradient = draw(0.0);
    if (shape.fused) residual = draw(0.0);
    layer = MakeBatchNorm(shape.channels, 1e-5, 0.3);
    const at::NoGradGuard no_grad;
    layer.weight.normal_(0.0, 1.0, generator);
    layer.bias.normal_(0.0, 1.0, generator);
  }

  at::Tensor input, gradient, residual;
  BatchNormLayer layer;
};

BatchNormLayer CopyOf(const BatchNormLayer& layer, at::ScalarType type) {
  BatchNormLayer copy = layer;
  copy.weight = layer.weight.detach().to(type).clone().requires_grad_();
  copy.bias = layer.bias.detach().to(type).clone().requires_grad_();
  copy.running_mean = layer.running_mean.to(type).clone();
  copy.running_var = layer.running_var.to(type).clone();
  copy.num_batches_tracked = layer.num_batches_tracked.clone();
  return copy;
}

// What one rank, or the reference, ends with.
struct Result {
  at::Tensor output, input_gradient, residual_gradient;
  BatchNormLayer layer;
};

Result RunRank(const Case& shape, const Whole& whole, Communicator& communicator) {
  const int64_t first = shape.begin(communicator.rank());
  const int64_t count = shape.images[static_cast<size_t>(communicator.rank())];
  const bool wide = shape.type == at::kDouble;
  Result result;
  result.layer = CopyOf(whole.layer, wide ? at::kDouble : at::kFloat);
  result.layer.group = *communicator.Duplicate();
  const at::Tensor input = whole.input.narrow(0, first, count).detach().requires_grad_();
  if (shape.fused) {
    const at::Tensor residual = whole.residual.narrow(0, first, count).detach().requires_grad_();
    EXPECT_TRUE(CanFuseBatchNormRelu(result.layer, input, residual));
    result.output = BatchNormRelu(result.layer, input, residual, NormMode::kTraining);
    result.output.backward(whole.gradient.narrow(0, first, count));
    result.residual_gradient = residual.grad();
  } else {
    result.output = result.layer.Forward(input, NormMode::kTraining);
    result.output.backward(whole.gradient.narrow(0, first, count));
  }
  result.input_gradient = input.grad();
  return result;
}

at::Tensor Wide(const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); }

// output: of the ranks, which decides about the kink of ReLU.
Result RunReference(const Case& shape, const Whole& whole, const at::Tensor& output) {
  Result result;
  result.layer = CopyOf(whole.layer, at::kDouble);
  const at::Tensor input = Wide(whole.input).requires_grad_();
  at::Tensor map = result.layer.Forward(input, NormMode::kTraining);
  at::Tensor gradient = Wide(whole.gradient);
  if (shape.fused) {
    map = map + Wide(whole.residual);
    gradient = gradient * (output > 0);
    result.residual_gradient = gradient;
  }
  map.backward(gradient);
  result.output = shape.fused ? map.relu() : map;
  result.input_gradient = input.grad();
  return result;
}

void ExpectWithin(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& tolerance, const char* what) {
  const at::Tensor excess = (Wide(actual) - Wide(expected)).abs() - tolerance;
  EXPECT_LE(excess.max().item<double>(), 0.0) << what;
}

// Rounding of the map's format, enlarged by the slope of the normalisation.
void CheckResults(const Case& shape, const Whole& whole, const std::vector<Result>& ranks) {
  std::vector<at::Tensor> outputs, input_gradients, residual_gradients;
  at::Tensor weight_gradient = at::zeros_like(whole.layer.weight, at::kDouble);
  at::Tensor bias_gradient = at::zeros_like(whole.layer.bias, at::kDouble);
  for (const Result& rank : ranks) {
    outputs.push_back(Wide(rank.output));
    input_gradients.push_back(Wide(rank.input_gradient));
    if (shape.fused) residual_gradients.push_back(Wide(rank.residual_gradient));
    weight_gradient += Wide(rank.layer.weight.grad());
    bias_gradient += Wide(rank.layer.bias.grad());
  }
  const at::Tensor output = at::cat(outputs);
  const Result expected = RunReference(shape, whole, output);

  const double unit = shape.type == at::kDouble ? 1e-13 : 8e-6;
  const double rounding = shape.type == at::kBFloat16 ? 1.0 / 256.0 : 0.0;
  std::vector<int64_t> along(static_cast<size_t>(output.dim()), 1);
  along[1] = shape.channels;
  const BatchNormLayer& layer = expected.layer;
  // The batch's own, solved from the running ones.
  const double n = static_cast<double>(output.numel() / shape.channels);
  const at::Tensor variance = ((layer.running_var - (1.0 - layer.momentum)) / layer.momentum * ((n - 1.0) / n));
  const at::Tensor invstd = (variance.clamp_min(0.0) + layer.eps).rsqrt();
  const at::Tensor slope = (layer.weight.detach().abs() * invstd + 1.0).view(along);
  const at::Tensor steep = (invstd + 1.0).view(along);
  ExpectWithin(output, expected.output, slope * unit + expected.output.detach().abs() * rounding, "output");
  ExpectWithin(at::cat(input_gradients), expected.input_gradient,
               slope * steep * unit + expected.input_gradient.abs() * rounding, "gradient of the input");
  if (shape.fused) {
    ExpectWithin(at::cat(residual_gradients), expected.residual_gradient, at::zeros_like(output), "residual");
  }
  const at::Tensor of_sums = (invstd + 1.0) * unit * 2.0 * (std::sqrt(n) + 1.0);
  ExpectWithin(weight_gradient, layer.weight.grad(), of_sums, "gradient of the weight");
  ExpectWithin(bias_gradient, layer.bias.grad(), of_sums, "gradient of the bias");
  for (const Result& rank : ranks) {
    const at::Tensor close = at::ones_like(layer.running_mean) * unit;
    ExpectWithin(rank.layer.running_mean, layer.running_mean, close, "running mean");
    ExpectWithin(rank.layer.running_var, layer.running_var, close * (layer.running_var + 1.0), "running variance");
    EXPECT_EQ(rank.layer.num_batches_tracked.item<int64_t>(), 1);
  }
}

void CheckCase(const Case& shape) {
  SCOPED_TRACE(::testing::Message() << shape);
  const Whole whole(shape);
  std::vector<Result> results(shape.images.size());
  ASSERT_OK(ThreadWorld(shape.size(), absl::Seconds(60)).Run([&](Communicator& communicator) {
    results[static_cast<size_t>(communicator.rank())] = RunRank(shape, whole, communicator);
    return absl::OkStatus();
  }));
  CheckResults(shape, whole, results);
}

Case DrawCase(int64_t ranks, std::mt19937_64* random) {
  const auto draw = [random](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(*random);
  };
  Case shape;
  shape.fused = draw(0, 1) == 1;
  shape.channels = draw(0, 3) == 0 ? draw(100, 2100) : draw(1, 40);
  shape.side = shape.fused ? draw(1, 9) : draw(0, 9);
  shape.channels_last = shape.fused || draw(0, 1) == 1;
  const at::ScalarType types[] = {at::kFloat, at::kFloat, at::kBFloat16, at::kDouble};
  shape.type = types[draw(0, shape.fused ? 2 : 3)];
  for (int64_t rank = 0; rank < ranks; ++rank) shape.images.push_back(draw(1, 7));
  shape.images.back() += 4;  // variances of very few values are too small to compare by
  return shape;
}

TEST(SyncBatchNorm, DrawnBatches_AgreeWithTheWholeBatch) {
  std::mt19937_64 random(kSeed);
  for (const int64_t ranks : {1, 2, 4}) {
    for (int i = 0; i < 16; ++i) CheckCase(DrawCase(ranks, &random));
  }
}

TEST(SyncBatchNorm, RankWithoutImages_TakesPart) {
  Case shape{{3, 0, 5}, 6, 4};
  CheckCase(shape);
  shape.side = 0;
  CheckCase(shape);
}

TEST(SyncBatchNorm, TwoProcesses_AgreeWithTheWholeBatch) {
  const Case shape{{3, 6}, 33, 5, at::kFloat, /*channels_last=*/true, /*fused=*/true};
  const Whole whole(shape);
  EXPECT_OK(ProcessWorld(2).Run([&](Communicator& communicator) -> absl::Status {
    const Result own = RunRank(shape, whole, communicator);
    // Everything of the other rank; batches differ in size.
    std::vector<Result> ranks(2);
    for (int64_t rank = 0; rank < 2; ++rank) {
      Result& result = ranks[static_cast<size_t>(rank)];
      result.layer = CopyOf(own.layer, at::kFloat);
      const int64_t first = shape.begin(rank);
      const int64_t count = shape.images[static_cast<size_t>(rank)];
      const auto from = [&](const at::Tensor& mine, const at::Tensor& like) {
        at::Tensor value = communicator.rank() == rank ? mine.detach().contiguous() : at::empty_like(like).contiguous();
        EXPECT_OK(communicator.Broadcast(value, rank));
        return value;
      };
      const at::Tensor map = whole.input.narrow(0, first, count).contiguous();
      result.output = from(own.output, map);
      result.input_gradient = from(own.input_gradient, map);
      result.residual_gradient = from(own.residual_gradient, map);
      result.layer.weight.mutable_grad() = from(own.layer.weight.grad(), own.layer.weight);
      result.layer.bias.mutable_grad() = from(own.layer.bias.grad(), own.layer.bias);
      result.layer.running_mean = from(own.layer.running_mean, own.layer.running_mean);
      result.layer.running_var = from(own.layer.running_var, own.layer.running_var);
    }
    CheckResults(shape, whole, ranks);
    return absl::OkStatus();
  }));
}

// Sum over ranks of a function of the outputs that is no sum of squares, whose gradient would vanish.
double TotalLoss(const std::vector<at::Tensor>& inputs, const at::Tensor& weight, const at::Tensor& bias,
                 std::vector<at::Tensor>* gradients) {
  std::vector<double> losses(inputs.size());
  EXPECT_OK(ThreadWorld(static_cast<int64_t>(inputs.size()), absl::Seconds(60)).Run([&](Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    BatchNormLayer layer = CopyOf(MakeBatchNorm(weight.numel()), at::kDouble);
    layer.weight = weight;
    layer.bias = bias;
    layer.group = *communicator.Duplicate();
    const at::Tensor input = inputs[rank].clone().requires_grad_();
    const at::Tensor output = layer.Forward(input, NormMode::kTraining);
    const at::Tensor loss = (output.pow(3) * static_cast<double>(rank + 1) + output.sin()).sum();
    losses[rank] = loss.item<double>();
    loss.backward();
    (*gradients)[rank] = input.grad();
    return absl::OkStatus();
  }));
  double sum = 0.0;
  for (const double loss : losses) sum += loss;
  return sum;
}

TEST(SyncBatchNorm, GradientOfTheInput_IsTheSlopeOfAllRanksLosses) {
  at::Generator generator = MakeGenerator(3);
  const auto draw = [&](at::IntArrayRef sizes) { return at::empty(sizes, at::kDouble).normal_(0.0, 1.0, generator); };
  std::vector<at::Tensor> inputs = {draw({3, 2, 1, 2}), draw({2, 2, 1, 2})};
  const at::Tensor weight = draw({2});
  const at::Tensor bias = draw({2});
  std::vector<at::Tensor> gradients(2), unused(2);
  TotalLoss(inputs, weight, bias, &gradients);
  constexpr double kStep = 1e-5;
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    const at::Tensor values = inputs[rank].view({-1});
    for (int64_t i = 0; i < values.numel(); ++i) {
      const double value = values[i].item<double>();
      values[i].fill_(value + kStep);
      const double above = TotalLoss(inputs, weight, bias, &unused);
      values[i].fill_(value - kStep);
      const double below = TotalLoss(inputs, weight, bias, &unused);
      values[i].fill_(value);
      const double slope = (above - below) / (2.0 * kStep);
      EXPECT_NEAR(gradients[rank].reshape({-1})[i].item<double>(), slope, 1e-7 * (1.0 + std::abs(slope)));
    }
  }
}

TEST(SyncBatchNorm, EachLayer_CommunicatesOncePerPass) {
  for (const bool fused : {false, true}) {
    ASSERT_OK(ThreadWorld(2, absl::Seconds(60)).Run([fused](Communicator& communicator) {
      const Case shape{{2, 2}, 3, 4};
      const Whole whole(shape);
      CollectiveCounts counts;
      BatchNormLayer layer = CopyOf(whole.layer, at::kFloat);
      layer.group = std::make_shared<CountingCommunicator>(communicator, &counts);
      const at::Tensor input = whole.input.narrow(0, 0, 2).detach().requires_grad_();
      layer.Forward(input, NormMode::kEvaluation).sum().backward();
      EXPECT_THAT(counts.Take(), IsEmpty()) << "evaluation";
      const at::Tensor output =
          fused ? BatchNormRelu(layer, input, {}, NormMode::kTraining) : layer.Forward(input, NormMode::kTraining);
      EXPECT_THAT(counts.Take(), ElementsAre(Pair("all-reduce", 1))) << "forward";
      output.pow(2).sum().backward();
      EXPECT_THAT(counts.Take(), ElementsAre(Pair("all-reduce", 1))) << "backward";
      return absl::OkStatus();
    }));
  }
}

// Of a rank that has lost its peer.
class BrokenCommunicator : public CountingCommunicator {
 public:
  explicit BrokenCommunicator(Communicator& base) : CountingCommunicator(base, &counts_) {}
  absl::Status AllReduce(at::Tensor&, ReduceOp) override { return absl::UnavailableError("rank 1 is gone"); }

 private:
  CollectiveCounts counts_;
};

TEST(SyncBatchNorm, LostPeer_IsAnErrorOfTheNetwork) {
  const Case shape{{2}, 3, 4};
  const Whole whole(shape);
  EXPECT_OK(ThreadWorld(1, absl::Seconds(60)).Run([&](Communicator& communicator) {
    BatchNormLayer layer = whole.layer;
    layer.group = std::make_shared<BrokenCommunicator>(communicator);
    const absl::Status status = GuardTorch("forward", [&] {
      layer.Forward(whole.input, NormMode::kTraining);
      return absl::OkStatus();
    });
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 1 is gone")));
    EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 0);
    return absl::OkStatus();
  }));
}

TEST(SyncBatchNorm, SecondPassWithoutARecord_IsAnError) {
  EXPECT_OK(ThreadWorld(1, absl::Seconds(60)).Run([&](Communicator& communicator) {
    BatchNormLayer layer = MakeBatchNorm(3);
    layer.group = *communicator.Duplicate();
    const at::Tensor input = at::empty({2, 3}).fill_(1.0);
    EXPECT_THROW(layer.Forward(input, NormMode::kRecompute), c10::Error);
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
