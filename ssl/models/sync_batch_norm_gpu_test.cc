// SPDX-License-Identifier: Apache-2.0
//
// Batch norm over ranks whose maps are on a GPU, against one layer on the whole batch there and on the CPU.
#include "ssl/models/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/models/layers.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int64_t kImages = 7;
constexpr int64_t kChannels = 33;
constexpr int64_t kOfRankZero = 3;
constexpr double kTolerance = 1e-5;
const at::Device kGpu(at::kCUDA, 0);

// What all ranks together start from, on the CPU.
struct Whole {
  explicit Whole(bool channels_last) {
    at::Generator generator = MakeGenerator(20261122);
    const at::MemoryFormat format = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const auto draw = [&](double mean) {
      return at::empty({kImages, kChannels, 5, 4}, at::kFloat).normal_(mean, 1.0, generator).contiguous(format);
    };
    input = draw(0.5);
    gradient = draw(0.0);
    layer = MakeBatchNorm(kChannels, 1e-5, 0.3);
    const at::NoGradGuard no_grad;
    layer.weight.normal_(0.0, 1.0, generator);
    layer.bias.normal_(0.0, 1.0, generator);
  }

  at::Tensor input, gradient;
  BatchNormLayer layer;
};

struct Result {
  at::Tensor output, input_gradient;
  BatchNormLayer layer;
};

Result Run(const Whole& whole, int64_t first, int64_t images, at::Device device,
           const std::shared_ptr<Communicator>& group) {
  const auto copy = [device](const at::Tensor& tensor) { return tensor.detach().clone().to(device); };
  Result result;
  BatchNormLayer& layer = result.layer;
  layer = whole.layer;
  layer.weight = copy(whole.layer.weight).requires_grad_();
  layer.bias = copy(whole.layer.bias).requires_grad_();
  layer.running_mean = copy(whole.layer.running_mean);
  layer.running_var = copy(whole.layer.running_var);
  layer.num_batches_tracked = copy(whole.layer.num_batches_tracked);
  layer.group = group;
  const at::Tensor input = copy(whole.input.narrow(0, first, images)).requires_grad_();
  result.output = layer.Forward(input, NormMode::kTraining);
  result.output.backward(copy(whole.gradient.narrow(0, first, images)));
  result.input_gradient = input.grad();
  return result;
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const char* what) {
  EXPECT_EQ(actual.device(), kGpu) << what;
  const at::Tensor difference = actual.detach().cpu() - expected.detach().cpu();
  EXPECT_LE(difference.abs().max().item<double>(), kTolerance * expected.abs().max().item<double>()) << what;
}

absl::Status CheckRank(const Whole& whole, Communicator& communicator) {
  const int64_t first = communicator.rank() == 0 ? 0 : kOfRankZero;
  const int64_t images = communicator.rank() == 0 ? kOfRankZero : kImages - kOfRankZero;
  SSL_ASSIGN_OR_RETURN(std::shared_ptr<Communicator> group, communicator.Duplicate());
  const Result own = Run(whole, first, images, kGpu, group);
  at::Tensor weight_gradient = own.layer.weight.grad().clone();
  at::Tensor bias_gradient = own.layer.bias.grad().clone();
  SSL_RETURN_IF_ERROR(communicator.AllReduce(weight_gradient, ReduceOp::kSum));
  SSL_RETURN_IF_ERROR(communicator.AllReduce(bias_gradient, ReduceOp::kSum));
  for (const at::Device device : {kGpu, at::Device(at::kCPU)}) {
    SCOPED_TRACE(device.str());
    const Result joint = Run(whole, 0, kImages, device, nullptr);
    ExpectClose(own.output, joint.output.narrow(0, first, images), "output");
    ExpectClose(own.input_gradient, joint.input_gradient.narrow(0, first, images), "gradient of the input");
    ExpectClose(weight_gradient, joint.layer.weight.grad(), "gradient of the weight");
    ExpectClose(bias_gradient, joint.layer.bias.grad(), "gradient of the bias");
    ExpectClose(own.layer.running_mean, joint.layer.running_mean, "running mean");
    ExpectClose(own.layer.running_var, joint.layer.running_var, "running variance");
  }
  return absl::OkStatus();
}

absl::Status CheckRankInBothLayouts(Communicator& communicator) {
  for (const bool channels_last : {false, true}) SSL_RETURN_IF_ERROR(CheckRank(Whole(channels_last), communicator));
  return absl::OkStatus();
}

TEST(SyncBatchNormGpuTest, Threads_AgreeWithTheWholeBatch) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run(&CheckRankInBothLayouts));
}

TEST(SyncBatchNormGpuTest, VirtualRanks_AgreeWithTheWholeBatch) {
  EXPECT_OK(VirtualWorld(2, *MakeLocalCommunicator()).Run(&CheckRankInBothLayouts));
}

TEST(SyncBatchNormGpuTest, Processes_AgreeWithTheWholeBatch) {
  EXPECT_OK(ProcessWorld(2).Run(&CheckRankInBothLayouts));
}

}  // namespace
}  // namespace ssl
