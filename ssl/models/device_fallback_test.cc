// SPDX-License-Identifier: Apache-2.0
//
// Layers with kernels of their own for the CPU leave tensors of another device to LibTorch's operators.
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/models/conv_norm.h"
#include "ssl/models/layers.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

using testing::IsEmpty;

at::Tensor Wave(at::IntArrayRef shape) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kFloat).mul(0.37))
      .view(shape)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

void MoveToDevice(const ModelTensors& tensors) {
  for (const ModelTensor& entry : tensors) entry.value.set_data(entry.value.detach().to(StandinDevice::device()));
}

struct Case {
  std::string name;
  ConvShape shape;
  std::vector<int64_t> input;
};

// Of each kernel that the CPU has for convolutions (layers.cc, winograd_conv.h), and of none.
std::vector<Case> Cases() {
  return {{"winograd", {32, 32, 3}, {2, 32, 32, 32}},
          {"a matrix, on a map of four pixels", {16, 24, 3}, {3, 16, 2, 2}},
          {"single pixels of few channels", {8, 16, 1, 2}, {2, 8, 8, 8}},
          {"a product of single pixels", {64, 128, 1, 2}, {16, 64, 16, 16}},
          {"windows", {128, 256, 3, 2}, {64, 128, 4, 4}},
          {"groups", {8, 8, 3, 1, 2}, {2, 8, 9, 7}}};
}

struct Result {
  at::Tensor output;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
  at::Tensor running_mean;
};

Result ForwardAndBackward(const Case& one, at::Device device) {
  at::Generator generator = MakeGenerator(3);
  const BatchNormLayer norm = MakeBatchNorm(one.shape.out);
  const ConvNorm layer = {MakeConv(one.shape, ConvInit::kKaimingUniform, generator), norm};
  const at::Tensor input = Wave(one.input).to(device).requires_grad_();
  if (!device.is_cpu()) {
    ModelTensors tensors;
    layer.conv.List("", &tensors);
    norm.List("", &tensors);
    MoveToDevice(tensors);
  }
  const TransferLog log;
  const at::Tensor output = layer.ForwardRelu(input, /*shortcut=*/{}, NormMode::kTraining);
  output.pow(2).sum().backward();
  EXPECT_THAT(log.reads(), IsEmpty()) << one.name;
  EXPECT_THAT(log.uploads(), IsEmpty()) << one.name;
  return {output.detach(), input.grad(), layer.conv.weight.grad(), norm.running_mean};
}

bool AreClose(const at::Tensor& found, const at::Tensor& expected) {
  const double largest = expected.abs().max().item<double>();
  return at::allclose(found.to(at::kCPU), expected, /*rtol=*/1e-4, /*atol=*/1e-4 * largest);
}

TEST(DeviceFallback, ConvolutionsAndNormsOfAnotherDevice) {
  StandinDevice::Install();
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    const Result expected = ForwardAndBackward(one, at::kCPU);
    const Result found = ForwardAndBackward(one, StandinDevice::device());
    EXPECT_EQ(found.output.device(), StandinDevice::device());
    EXPECT_TRUE(AreClose(found.output, expected.output));
    EXPECT_TRUE(AreClose(found.input_gradient, expected.input_gradient));
    EXPECT_TRUE(AreClose(found.weight_gradient, expected.weight_gradient));
    EXPECT_TRUE(at::allclose(found.running_mean.to(at::kCPU), expected.running_mean, 1e-4, 1e-6));
  }
}

TEST(DeviceFallback, LinearLayersOfAnotherDeviceAreTheSame) {
  StandinDevice::Install();
  at::Generator generator = MakeGenerator(3);
  const LinearLayer layer = MakeLinear(64, 128, /*use_bias=*/true, generator);
  const at::Tensor input = Wave({1, 1, 512, 64}).view({512, 64});
  const at::Tensor expected = layer.Forward(input);
  ModelTensors tensors;
  layer.List("", &tensors);
  MoveToDevice(tensors);
  const TransferLog log;
  const at::Tensor found = layer.Forward(input.to(StandinDevice::device()));
  EXPECT_THAT(log.reads(), IsEmpty());
  EXPECT_TRUE(AreClose(found, expected));
}

}  // namespace
}  // namespace ssl
