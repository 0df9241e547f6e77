// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the GPU against LibTorch's operators of the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/kernels/scale_by_kernel.h"
#include "ssl/kernels/scale_gradients.h"

namespace ssl {
namespace {

std::vector<at::Tensor> OnGpu(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.to(at::kCUDA));
  return copies;
}

// More tensors than a launch has, small and of several chunks, and kernels of convolutions that lie channels-last.
std::vector<at::Tensor> Tensors() {
  std::vector<at::Tensor> tensors;
  for (int64_t i = 0; i < 300; ++i) tensors.push_back(at::randn({i % 7 == 0 ? 40000 + i : i}));
  for (int i = 0; i < 5; ++i) tensors.push_back(at::randn({64, 32, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast));
  return tensors;
}

TEST(ScaleGradientsGpu, AgreesWithTheCpu) {
  for (const double decay : {0.0, 0.1}) {
    const std::vector<at::Tensor> expected = Tensors();
    const std::vector<at::Tensor> parameters = Tensors();
    const at::Tensor rates = at::randn({static_cast<int64_t>(expected.size())});
    const std::vector<at::Tensor> actual = OnGpu(expected);
    ASSERT_TRUE(HasScaleKernel(actual, OnGpu(parameters), rates.to(at::kCUDA)));
    ScaleGradients(actual, OnGpu(parameters), decay, rates.to(at::kCUDA));
    ScaleGradients(expected, parameters, decay, rates);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(actual[i].cpu(), expected[i], /*rtol=*/0.0, /*atol=*/1e-5)) << "tensor " << i;
    }
  }
}

// As autograd leaves them, whose strides are not those of the parameter.
TEST(ScaleGradientsGpu, GradientsOfConvolutions_AreTaken) {
  const at::Tensor images = at::randn({2, 8, 6, 6}, at::kCUDA).contiguous(at::MemoryFormat::ChannelsLast);
  std::vector<at::Tensor> kernels;
  std::vector<at::Tensor> gradients;
  for (const int64_t size : {1, 3}) {
    kernels.push_back(at::randn({16, 8, size, size}, at::kCUDA).contiguous(at::MemoryFormat::ChannelsLast));
    kernels.back().requires_grad_();
    at::conv2d(images, kernels.back()).sum().backward();
    gradients.push_back(kernels.back().grad());
  }
  EXPECT_TRUE(HasScaleKernel(gradients, kernels, at::randn({2}, at::kCUDA)));
}

TEST(ScaleGradientsGpu, WhatLiesOtherwise_IsLeftToTheOperators) {
  const at::Tensor rates = at::randn({1}).to(at::kCUDA);
  const at::Tensor matrix = at::randn({4, 6}).to(at::kCUDA);
  EXPECT_TRUE(HasScaleKernel({matrix}, {matrix}, rates));
  EXPECT_FALSE(HasScaleKernel({matrix}, {matrix.t().contiguous().t()}, rates));
  EXPECT_FALSE(HasScaleKernel({matrix.slice(1, 0, 3)}, {matrix.slice(1, 0, 3)}, rates));
  EXPECT_FALSE(HasScaleKernel({matrix.to(at::kDouble)}, {matrix}, rates));
  EXPECT_FALSE(HasScaleKernel({matrix.cpu()}, {matrix.cpu()}, rates));
}

}  // namespace
}  // namespace ssl
