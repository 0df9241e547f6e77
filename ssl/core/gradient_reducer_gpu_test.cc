// SPDX-License-Identifier: Apache-2.0
//
// Gradients on a GPU, against the mean of those of all ranks on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kLayers = 5;
constexpr int64_t kSteps = 3;

// Equal on all ranks.
std::vector<NamedParameter> Layers(at::Device device) {
  std::vector<NamedParameter> layers;
  for (int64_t i = 0; i < kLayers; ++i) {
    const at::Tensor value = (at::arange(kWidth * kWidth, at::kFloat).view({kWidth, kWidth}) * (0.1 + i)).sin();
    layers.push_back({absl::StrCat("layer", i), value.to(device).requires_grad_()});
  }
  return layers;
}

// Of a batch that no other rank and step has. In the first step rank 0 leaves out the last layer.
at::Tensor Loss(const std::vector<NamedParameter>& layers, int64_t rank, int64_t step) {
  at::Tensor value = (at::arange(4 * kWidth, at::kFloat).view({4, kWidth}) * (rank + 1) + step * 0.3).cos();
  value = value.to(layers[0].value.device());
  for (int64_t i = 0; i < kLayers - (rank == 0 && step == 0 ? 1 : 0); ++i) {
    value = value.matmul(layers[i].value).tanh();
  }
  return value.pow(2).mean();
}

void ExpectMeanOverRanks(const std::vector<NamedParameter>& actual, int64_t ranks, int64_t step) {
  const std::vector<NamedParameter> expected = Layers(at::kCPU);
  for (int64_t rank = 0; rank < ranks; ++rank) (Loss(expected, rank, step) / ranks).backward();
  for (int64_t i = 0; i < kLayers; ++i) {
    const at::Tensor& gradient = actual[i].value.grad();
    ASSERT_TRUE(gradient.is_cuda());
    EXPECT_TRUE(gradient.cpu().allclose(expected[i].value.grad(), /*rtol=*/1e-5, /*atol=*/1e-6)) << i << " " << step;
  }
}

absl::Status ReduceSteps(Communicator& communicator) {
  for (const int64_t bucket_bytes : {int64_t{1}, int64_t{600}, int64_t{1} << 20}) {
    std::vector<NamedParameter> layers = Layers(at::Device(at::kCUDA, 0));
    GradientReducer reducer(layers, {bucket_bytes, 1}, communicator);
    for (int64_t step = 0; step < kSteps; ++step) {
      const at::Tensor loss = Loss(layers, communicator.rank(), step);
      SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
      loss.backward();
      SSL_RETURN_IF_ERROR(reducer.Reduce());
      ExpectMeanOverRanks(layers, communicator.size(), step);
      for (NamedParameter& layer : layers) layer.value.mutable_grad().reset();
    }
  }
  return absl::OkStatus();
}

TEST(GradientReducerGpuTest, Gradients_AreTheirMeanOverThreads) {
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run(&ReduceSteps));
}

TEST(GradientReducerGpuTest, Gradients_AreTheirMeanOverVirtualRanks) {
  EXPECT_OK(VirtualWorld(2, *MakeLocalCommunicator()).Run(&ReduceSteps));
}

TEST(GradientReducerGpuTest, Gradients_AreTheirMeanOverProcesses) { EXPECT_OK(ProcessWorld(2).Run(&ReduceSteps)); }

}  // namespace
}  // namespace ssl
