// SPDX-License-Identifier: Apache-2.0
//
// What a kernel does with many tensors, done by threads of the host, beside LibTorch's operators.
#include "ssl/kernels/scale_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/kernels/scale_chunk.h"
#include "ssl/kernels/testing/thread_team.h"

namespace ssl {
namespace {

std::vector<at::Tensor> Randn(const std::vector<int64_t>& sizes) {
  std::vector<at::Tensor> tensors;
  for (const int64_t size : sizes) tensors.push_back(at::randn({size}));
  return tensors;
}

std::vector<at::Tensor> Copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

// None, one value, a chunk, one value more, and several.
const std::vector<int64_t> kSizes = {0, 1, kChunkSize, kChunkSize + 1, 7, 0, 3 * kChunkSize - 5, 40, 0};

TEST(ScaleChunk, ManyTensors_AreThoseOfTheOperators) {
  for (const double decay : {0.0, 0.1}) {
    const std::vector<at::Tensor> parameters = Randn(kSizes);
    const std::vector<at::Tensor> expected = Randn(kSizes);
    const std::vector<at::Tensor> actual = Copies(expected);
    const at::Tensor rates = at::randn({static_cast<int64_t>(kSizes.size())});
    ScaleLaunch launch;
    launch.rates = rates.const_data_ptr<float>();
    launch.weight_decay = static_cast<float>(decay);
    for (size_t i = 0; i < kSizes.size(); ++i) {
      launch.Add({actual[i].mutable_data_ptr<float>(), decay == 0.0 ? nullptr : parameters[i].const_data_ptr<float>(),
                  actual[i].numel()});
    }
    ASSERT_EQ(launch.chunks(), 1 + 1 + 2 + 1 + 3 + 1);
    RunTeams(launch.chunks(), 2,
             [&](const ThreadTeam& team, const ThreadTeams& teams) { ScaleChunk(team, launch, teams.index()); });
    ScaleGradients(expected, parameters, decay, rates);
    // Of values near 1, of which a sum may be near 0.
    for (size_t i = 0; i < kSizes.size(); ++i) {
      EXPECT_TRUE(at::allclose(actual[i], expected[i], /*rtol=*/0.0, /*atol=*/1e-5)) << "tensor " << i;
    }
  }
}

TEST(ScaleLaunch, Full_IsAnArgumentOfAKernel) {
  ScaleLaunch launch;
  for (int i = 0; i < ScaleLaunch::kMostTensors; ++i) {
    ASSERT_FALSE(launch.is_full());
    launch.Add({nullptr, nullptr, i % 3});
  }
  EXPECT_TRUE(launch.is_full());
  EXPECT_LE(sizeof(launch), 4096);
  for (int i = 0, chunk = 0; i < ScaleLaunch::kMostTensors; ++i) {
    if (i % 3 == 0) continue;
    EXPECT_EQ(TensorOfChunk(launch, chunk++), i);
  }
}

TEST(ScaleGradients, IsDecayThenRate) {
  const std::vector<at::Tensor> gradients = Randn({5, 3});
  const std::vector<at::Tensor> parameters = Randn({5, 3});
  const std::vector<at::Tensor> before = Copies(gradients);
  const at::Tensor rates = at::randn({2});
  ScaleGradients(gradients, parameters, 0.5, rates);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor rate = rates[static_cast<int64_t>(i)];
    EXPECT_TRUE(at::allclose(gradients[i], (before[i] + parameters[i] * 0.5) * rate, /*rtol=*/0.0, /*atol=*/1e-5))
        << "tensor " << i;
  }
}

}  // namespace
}  // namespace ssl
