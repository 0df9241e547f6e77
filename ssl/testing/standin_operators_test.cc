// SPDX-License-Identifier: Apache-2.0
//
// Families of operators on the stand-in device, each compared with the CPU bit for bit, and so is a replay of each.
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_recording.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

using testing::IsEmpty;

using Tensors = std::vector<at::Tensor>;

class StandinOperatorsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }
  void SetUp() override { Seed(); }

  static void Seed() {
    for (const at::Device device : {at::Device(at::kCPU), StandinDevice::device()}) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      generator.set_current_seed(7);
    }
  }

  static at::Tensor OnDevice(const at::Tensor& tensor) { return tensor.to(StandinDevice::device()); }

  static Tensors OnDevice(const Tensors& tensors) {
    Tensors moved;
    for (const at::Tensor& tensor : tensors) moved.push_back(OnDevice(tensor.clone()));
    return moved;
  }

  // Runs `function` on the CPU and on the device, which reads nothing back, and replays a recording of it there; what
  // it returns and what it changes are equal, and of the same layout.
  static void ExpectSame(const Tensors& inputs, const std::function<Tensors(const Tensors&)>& function) {
    const Tensors device_inputs = OnDevice(inputs);
    const Tensors replayed_inputs = OnDevice(inputs);
    const Tensors replayed = Replayed(replayed_inputs, function);
    Seed();
    const Tensors expected = function(inputs);
    const TransferLog log;
    const Tensors results = function(device_inputs);
    EXPECT_THAT(log.reads(), IsEmpty());
    EXPECT_THAT(log.uploads(), IsEmpty());
    ExpectEqual(results, expected);
    ExpectEqual(device_inputs, inputs);
    ExpectEqual(replayed, expected);
    ExpectEqual(replayed_inputs, inputs);
  }

  // The results of a replay, which are not those of the first run.
  static Tensors Replayed(const Tensors& inputs, const std::function<Tensors(const Tensors&)>& function) {
    Tensors before;
    for (const at::Tensor& input : inputs) before.push_back(input.clone());
    const auto recording = std::make_shared<StandinRecording>();
    Tensors results;
    WithStandinRecording(recording, [&] { results = function(inputs); });
    for (const at::Tensor& result : results) result.zero_();
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].copy_(before[i]);
    Seed();
    recording->Replay();
    return results;
  }

  static void ExpectEqual(const Tensors& results, const Tensors& expected) {
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(results[i].device(), StandinDevice::device()) << i;
      EXPECT_EQ(results[i].strides(), expected[i].strides()) << i;
      EXPECT_EQ(results[i].scalar_type(), expected[i].scalar_type()) << i;
      EXPECT_TRUE(results[i].to(at::kCPU).equal(expected[i])) << i;
    }
  }
};

TEST_F(StandinOperatorsTest, BatchNormMovesRunningStatistics) {
  ExpectSame({at::randn({4, 3, 5, 5}), at::ones({3}), at::zeros({3}), at::zeros({3}), at::ones({3})},
             [](const Tensors& in) -> Tensors {
               const auto [output, mean, invstd] =
                   at::native_batch_norm(in[0], in[1], in[2], in[3], in[4], true, 0.1, 1e-5);
               return {output, mean, invstd};
             });
}

TEST_F(StandinOperatorsTest, OutFormsResize) {
  ExpectSame({at::randn({2, 3}), at::randn({3, 4})}, [](const Tensors& in) -> Tensors {
    at::Tensor product = at::empty({0}, in[0].options());
    at::mm_out(product, in[0], in[1]);
    at::Tensor again = at::empty({2, 4}, in[0].options());
    at::mm_out(again, in[0], in[1]);
    return {product, again, at::arange(5, in[0].options()), at::isfinite(in[0])};
  });
}

TEST_F(StandinOperatorsTest, ListsOfTensors) {
  ExpectSame({at::randn({2, 3}), at::randn({4})}, [](const Tensors& in) -> Tensors {
    at::_foreach_add_(in, in, 0.5);
    Tensors norms = at::_foreach_norm(in, 2);
    norms.push_back(at::cat({in[0].flatten(), in[1]}));
    return norms;
  });
}

TEST_F(StandinOperatorsTest, FusedOptimizers) {
  const at::NoGradGuard no_grad;
  ExpectSame({at::randn({9}), at::randn({9}), at::zeros({9}), at::zeros({9}), at::zeros({9}), at::ones({})},
             [](const Tensors& in) -> Tensors {
               at::_fused_sgd_({in[0]}, {in[1]}, {in[2]}, 1e-4, 0.9, 0.1, 0.0, false, false, true, {}, {});
               at::_fused_adamw_({in[0]}, {in[1]}, {in[3]}, {in[4]}, {}, {in[5]}, 0.1, 0.9, 0.999, 1e-4, 1e-8, false,
                                 false);
               return {};
             });
}

TEST_F(StandinOperatorsTest, ScaledGradientsAreChecked) {
  const at::NoGradGuard no_grad;
  at::Tensor infinite = at::ones({4});
  infinite[2] = 1.0f / 0.0f;
  ExpectSame({infinite, at::zeros({1}), at::full({1}, 0.5)}, [](const Tensors& in) -> Tensors {
    at::Tensor found = in[1];
    at::_amp_foreach_non_finite_check_and_unscale_({in[0]}, found, in[2]);
    return {found};
  });
}

TEST_F(StandinOperatorsTest, LayerNormAndAttentionForwardAndBackward) {
  ExpectSame({at::randn({6, 8, 16}), at::randn({16}), at::randn({16})}, [](const Tensors& in) -> Tensors {
    const at::Tensor tokens = in[0].detach().requires_grad_();
    const at::Tensor normal = at::layer_norm(tokens, {16}, in[1], in[2]);
    const at::Tensor mixed = at::softmax(normal.bmm(normal.transpose(1, 2)), -1).bmm(normal);
    at::gelu(mixed).sum().backward();
    return {mixed.detach(), tokens.grad()};
  });
}

TEST_F(StandinOperatorsTest, ScaledDotProductAttentionForwardAndBackward) {
  for (const double dropout : {0.0, 0.2}) {
    ExpectSame({at::randn({2, 2, 8, 16})}, [&](const Tensors& in) -> Tensors {
      const at::Tensor tokens = in[0].detach().requires_grad_();
      const at::Tensor mixed = at::scaled_dot_product_attention(tokens, tokens, tokens, /*attn_mask=*/{}, dropout);
      mixed.pow(2).sum().backward();
      return {mixed.detach(), tokens.grad()};
    });
  }
}

TEST_F(StandinOperatorsTest, DropoutForwardAndBackward) {
  const at::Tensor channels_last = at::randn({3, 5, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const double probability : {0.1, 0.5}) {
    const auto drop = [&](const Tensors& in) -> Tensors {
      Tensors results = {at::randperm(9, in[0].options().dtype(at::kLong))};
      for (const at::Tensor& input : in) {
        const at::Tensor values = input.detach().requires_grad_();
        const at::Tensor dropped = at::dropout(values, probability, true);
        dropped.pow(2).sum().backward();
        results.insert(results.end(), {dropped.detach(), values.grad()});
      }
      return results;
    };
    ExpectSame({at::randn({50, 7}), at::randn({50, 7}).to(at::kBFloat16), channels_last, at::randn({8, 6}).t()}, drop);
  }
}

TEST_F(StandinOperatorsTest, IndicesSortsAndImages) {
  ExpectSame({at::randn({4, 3, 8, 8}), at::arange(3)}, [](const Tensors& in) -> Tensors {
    const at::Tensor changed = in[0].clone();
    changed.index_put_({in[1]}, in[0].slice(0, 1));
    const auto [best, places] = at::topk(in[0].flatten(1), 5);
    return {changed,
            in[0].index_select(0, in[1]),
            best,
            places,
            in[0].flatten(1).argsort(1, /*descending=*/true),
            at::upsample_bicubic2d(in[0], {12, 12}, false, std::nullopt, std::nullopt),
            at::adaptive_avg_pool2d(in[0], {1, 1}),
            in[0].contiguous(at::MemoryFormat::ChannelsLast),
            in[0].unfold(2, 3, 2).contiguous(),
            in[0].to(at::kBFloat16)};
  });
}

TEST_F(StandinOperatorsTest, ViewsShareTheirMemory) {
  const at::Tensor values = OnDevice(at::zeros({4, 4}));
  values.select(0, 1).fill_(1);
  values.t().narrow(0, 3, 1).fill_(2);
  values.unfold(0, 2, 2).select(0, 0).select(0, 0).fill_(5);
  const at::Tensor expected = at::zeros({4, 4});
  expected.select(0, 1).fill_(1);
  expected.t().narrow(0, 3, 1).fill_(2);
  expected.unfold(0, 2, 2).select(0, 0).select(0, 0).fill_(5);
  EXPECT_TRUE(values.to(at::kCPU).equal(expected));
}

TEST_F(StandinOperatorsTest, MemoryGrowsAndIsReplaced) {
  const at::Tensor values = OnDevice(at::arange(3, at::kFloat));
  values.resize_({6});
  EXPECT_TRUE(values.slice(0, 0, 3).to(at::kCPU).equal(at::arange(3, at::kFloat)));
}

TEST_F(StandinOperatorsTest, ParametersMoveToTheDeviceAndBack) {
  const at::Tensor parameter = at::randn({2, 2}).requires_grad_();
  const at::Tensor expected = parameter.detach().clone();
  parameter.pow(2).sum().backward();
  parameter.mutable_grad().reset();
  parameter.set_data(OnDevice(parameter.detach()));
  parameter.pow(3).sum().backward();
  EXPECT_EQ(parameter.grad().device(), StandinDevice::device());
  EXPECT_TRUE(parameter.grad().to(at::kCPU).allclose(expected.pow(2).mul(3)));
  parameter.mutable_grad().reset();
  parameter.set_data(parameter.detach().to(at::kCPU));
  EXPECT_TRUE(parameter.equal(expected));
}

TEST_F(StandinOperatorsTest, AutocastTakesTheFormatsOfTheCpu) {
  const Tensors inputs = {at::randn({4, 8}), at::randn({6, 8}), at::randn({4, 6})};
  const auto run = [&](at::DeviceType device) {
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, at::kBFloat16);
    Tensors results;
    {
      const Tensors in = device == at::kCPU ? inputs : OnDevice(inputs);
      const at::Tensor weight = in[1].detach().requires_grad_();
      const at::Tensor scores = at::linear(in[0], weight);
      const at::Tensor loss = at::mse_loss(scores, in[2]) + at::cat({scores.softmax(1), in[2]}).sum();
      loss.backward();
      results = {scores.detach(), loss.detach(), weight.grad()};
    }
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device, false);
    return results;
  };
  const Tensors expected = run(at::kCPU);
  EXPECT_EQ(expected[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(expected[1].scalar_type(), at::kFloat);
  ExpectEqual(run(StandinDevice::device().type()), expected);
}

}  // namespace
}  // namespace ssl
