// SPDX-License-Identifier: Apache-2.0
//
// What the stand-in device promises: results of the CPU, refusals, and counts of what passes between it and the host.
#include "ssl/testing/standin_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

class StandinDeviceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }
  void SetUp() override { Seed(at::kCPU, 7); }

  static void Seed(at::Device device, uint64_t seed) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(seed);
  }

  static at::Tensor OnDevice(const at::Tensor& tensor) { return tensor.to(StandinDevice::device()); }
};

// The first line of the error; empty without one.
std::string ErrorOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

// Convolution, normalisation, pooling and a classifier, with SGD.
class Network {
 public:
  explicit Network(at::Device device) : device_(device) {
    at::Generator generator = at::detail::createCPUGenerator(3);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{8, 3, 3, 3}, {16, 8, 3, 3}, {5, 16}}) {
      parameters_.push_back(at::randn(sizes, generator, at::kFloat).mul(0.1).to(device).requires_grad_());
    }
    parameters_.push_back(at::ones({8}).to(device).requires_grad_());
    parameters_.push_back(at::zeros({8}).to(device).requires_grad_());
    mean_ = at::zeros({8}).to(device);
    variance_ = at::ones({8}).to(device);
  }

  // Returns the loss, on the device. images: [N, 3, H, W]; labels: [N].
  at::Tensor Step(const at::Tensor& images, const at::Tensor& labels) {
    at::Tensor map = at::conv2d(images, parameters_[0], {}, 1, 1);
    map = at::batch_norm(map, parameters_[3], parameters_[4], mean_, variance_, true, 0.1, 1e-5, false).relu();
    map = at::conv2d(at::max_pool2d(map, 2), parameters_[1], {}, 2, 1).relu().mean({2, 3});
    const at::Tensor loss = at::nll_loss(at::log_softmax(at::linear(map, parameters_[2]), 1), labels);
    loss.backward();
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters_) {
      parameter.add_(parameter.grad(), -0.1);
      parameter.mutable_grad().zero_();
    }
    return loss.detach();
  }

  // Parameters and running statistics, on the host.
  std::vector<at::Tensor> State() const {
    std::vector<at::Tensor> state;
    for (const at::Tensor& parameter : parameters_) state.push_back(parameter.detach().to(at::kCPU));
    state.push_back(mean_.to(at::kCPU));
    state.push_back(variance_.to(at::kCPU));
    return state;
  }

 private:
  const at::Device device_;
  std::vector<at::Tensor> parameters_;
  at::Tensor mean_;
  at::Tensor variance_;
};

TEST_F(StandinDeviceTest, StepsAreThoseOfTheCpuAndReadNothing) {
  Network on_cpu(at::kCPU);
  Network on_device(StandinDevice::device());
  const at::Tensor images = at::randn({4, 3, 16, 16});
  const at::Tensor labels = at::arange(4);
  const at::Tensor device_images = OnDevice(images);
  const at::Tensor device_labels = OnDevice(labels);
  for (int step = 0; step < 4; ++step) {
    const at::Tensor expected = on_cpu.Step(images, labels);
    const TransferLog log;
    const at::Tensor loss = on_device.Step(device_images, device_labels);
    EXPECT_THAT(log.reads(), IsEmpty());
    EXPECT_THAT(log.uploads(), IsEmpty());
    EXPECT_TRUE(loss.to(at::kCPU).equal(expected)) << "step " << step;
  }
  const std::vector<at::Tensor> expected = on_cpu.State();
  const std::vector<at::Tensor> state = on_device.State();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(state[i].equal(expected[i])) << i;
  EXPECT_FALSE(expected[5].equal(at::zeros({8}))) << "running means did not move";
}

TEST_F(StandinDeviceTest, CountsWhatTheHostReads) {
  const at::Tensor values = OnDevice(at::arange(6, at::kFloat).view({2, 3}));
  const TransferLog log;
  EXPECT_EQ(values.sum().item<float>(), 15.0f);
  EXPECT_THAT(log.reads(), ElementsAre(Pair("aten::_local_scalar_dense", 1)));
  (void)values.to(at::kCPU);
  (void)values.nonzero();
  (void)values.masked_select(values.gt(1));
  (void)values.equal(values);
  const TransferCounts reads = log.reads();
  EXPECT_EQ(reads.at("copy to the host of Float [2, 3]"), 1);
  EXPECT_EQ(reads.at("aten::nonzero"), 1);
  EXPECT_EQ(reads.at("aten::masked_select"), 1);
  EXPECT_EQ(reads.at("aten::equal"), 1);
  EXPECT_THAT(log.uploads(), IsEmpty());
}

TEST_F(StandinDeviceTest, CountsWhatTheHostUploads) {
  const TransferLog log;
  const at::Tensor values = OnDevice(at::ones({4}));
  values.add_(1).mul_(2.0).fill_(3);
  EXPECT_THAT(log.uploads(), ElementsAre(Pair("copy to the device of Float [4]", 1)));
  EXPECT_THAT(log.reads(), IsEmpty());
}

TEST_F(StandinDeviceTest, RefusesTensorsOfTheHostByOperatorAndArgument) {
  const at::Tensor host = at::ones({3, 3});
  const at::Tensor values = OnDevice(host);
  EXPECT_EQ(ErrorOf([&] { (void)at::mm(values, host); }), "aten::mm: argument 1 'mat2' is on the host: Float [3, 3]");
  EXPECT_EQ(ErrorOf([&] { (void)host.add(values); }), "aten::add: argument 0 'self' is on the host: Float [3, 3]");
  EXPECT_EQ(ErrorOf([&] { (void)values.clone().mul_(host); }),
            "aten::mul_: argument 1 'other' is on the host: Float [3, 3]");
  EXPECT_THAT(ErrorOf([&] {
                (void)at::conv2d(values.view({1, 1, 3, 3}), host.view({1, 1, 3, 3}));
              }),
              HasSubstr("argument 1 'weight' is on the host"));
  EXPECT_THAT(ErrorOf([&] {
                (void)values.index({at::arange(2), at::arange(2).to(StandinDevice::device())});
              }),
              HasSubstr("on the host"));
  EXPECT_EQ(ErrorOf([&] { (void)values.mul(at::ones({})); }), "") << "a single value of the host is an argument";
}

TEST_F(StandinDeviceTest, DrawsTheNumbersOfTheCpuFromItsOwnGenerator) {
  at::Generator device_generator = at::globalContext().defaultGenerator(StandinDevice::device());
  Seed(StandinDevice::device(), 11);
  Seed(at::kCPU, 11);
  const at::Tensor expected = at::randn({5});
  EXPECT_TRUE(at::randn({5}, StandinDevice::device()).to(at::kCPU).equal(expected));
  const at::Tensor next = at::randn({5}, StandinDevice::device()).to(at::kCPU);
  EXPECT_FALSE(next.equal(expected));

  const at::Tensor values = at::empty({5}, StandinDevice::device());
  at::Generator of_cpu = at::detail::createCPUGenerator(11);
  EXPECT_EQ(ErrorOf([&] { values.normal_(0, 1, of_cpu); }),
            "aten::normal_: argument 3 'generator' is a generator of cpu");
  Seed(StandinDevice::device(), 11);
  EXPECT_TRUE(values.normal_(0, 1, device_generator).to(at::kCPU).equal(expected));
}

TEST_F(StandinDeviceTest, HostCannotReadItsMemory) {
  const at::Tensor values = OnDevice(at::ones({4}));
  EXPECT_EXIT((void)*static_cast<const volatile float*>(values.const_data_ptr()), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(StandinDeviceTest, HasOneDevice) {
  EXPECT_EQ(StandinDevice::device().str(), "standin:0");
  EXPECT_THAT(ErrorOf([] { (void)at::empty({2}, at::Device(c10::DeviceType::PrivateUse1, 1)); }),
              AllOf(StartsWith("there is one stand-in device"), HasSubstr("device index is 1")));
  StandinDevice::Install();
}

}  // namespace
}  // namespace ssl
