// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/linear_product.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/autocast.h"

namespace ssl {
namespace {

at::Tensor Wave(int64_t rows, int64_t columns, double phase) {
  return at::sin(at::arange(rows * columns, at::kFloat) * 0.37 + phase).view({rows, columns});
}

// The product and all gradients of the sum of its entries, each weighted by `gradient`.
struct Results {
  at::Tensor output;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
  at::Tensor bias_gradient;
};

template <typename Linear>
Results RunPasses(const Linear& linear, at::ScalarType type, const at::Tensor& input, const at::Tensor& weight,
                  const at::Tensor& bias, const at::Tensor& gradient) {
  const auto leaf = [type](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.detach().to(type, /*non_blocking=*/false, /*copy=*/true).requires_grad_() : tensor;
  };
  const at::Tensor x = leaf(input);
  const at::Tensor w = leaf(weight);
  const at::Tensor b = leaf(bias);
  const at::Tensor output = linear(x, w, b);
  output.backward(gradient.to(type));
  return {output.detach(), x.grad(), w.grad(), b.defined() ? b.grad() : at::Tensor()};
}

at::Tensor Reference(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(input, weight, bias);
}

void ExpectClose(const at::Tensor& got, const at::Tensor& exact) {
  ASSERT_EQ(got.sizes(), exact.sizes());
  const double largest = exact.abs().max().item<double>();
  EXPECT_LE((got.to(at::kDouble) - exact).abs().max().item<double>(), 1e-5 * largest);
}

// Of as many rows as columns: 128^3 multiplications are enough for oneDNN.
constexpr int64_t kSide = 128;

std::atomic<int> one_dnn_calls{0};

std::unique_ptr<at::ObserverContext> CountOneDnn(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "mkldnn::_linear_pointwise") ++one_dnn_calls;
  return nullptr;
}

TEST(LinearProduct, LargeProductAndItsGradients_AreThoseInDouble) {
  const at::Tensor input = Wave(kSide + 3, kSide + 5, 0.0);
  const at::Tensor weight = Wave(kSide + 7, kSide + 5, 1.0);
  const at::Tensor gradient = Wave(kSide + 3, kSide + 7, 2.0);
  for (const at::Tensor& bias : {Wave(1, kSide + 7, 3.0).view(-1), at::Tensor()}) {
    const Results got = RunPasses(LinearProduct, at::kFloat, input, weight, bias, gradient);
    const Results exact = RunPasses(Reference, at::kDouble, input, weight, bias, gradient);
    ExpectClose(got.output, exact.output);
    ExpectClose(got.input_gradient, exact.input_gradient);
    ExpectClose(got.weight_gradient, exact.weight_gradient);
    if (bias.defined()) ExpectClose(got.bias_gradient, exact.bias_gradient);
  }
}

TEST(LinearProduct, LargeProductAndItsGradients_AreOneDnns) {
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(&CountOneDnn));
  one_dnn_calls = 0;
  RunPasses(LinearProduct, at::kFloat, Wave(kSide, kSide, 0.0), Wave(kSide, kSide, 1.0), at::Tensor(),
            Wave(kSide, kSide, 2));
  at::removeCallback(handle);
  EXPECT_EQ(one_dnn_calls, 3);
}

// Every second row, parts of wider rows, and columns for rows; a gradient that is one number for all.
TEST(LinearProduct, StridedMatricesAndGradients_AreRead) {
  const auto parts = [](const auto& linear) {
    return [&linear](const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
      const at::Tensor rows = input.slice(0, 0, 2 * kSide, 2);
      return linear(rows.slice(1, kSide), weight.slice(1, 0, kSide), bias) + linear(rows, weight.t(), bias);
    };
  };
  const at::Tensor input = Wave(2 * kSide, 2 * kSide, 0.0);
  const at::Tensor weight = Wave(2 * kSide, 2 * kSide, 1.0);
  const at::Tensor same_for_all = at::ones({1, 1}, at::kFloat).expand({kSide, 2 * kSide});
  const Results got = RunPasses(parts(LinearProduct), at::kFloat, input, weight, at::Tensor(), same_for_all);
  const Results exact = RunPasses(parts(Reference), at::kDouble, input, weight, at::Tensor(), same_for_all);
  ExpectClose(got.output, exact.output);
  ExpectClose(got.input_gradient, exact.input_gradient);
  ExpectClose(got.weight_gradient, exact.weight_gradient);
}

TEST(LinearProduct, FrozenWeight_GetsNoGradient) {
  const at::Tensor input = Wave(kSide, kSide, 0.0).requires_grad_();
  const at::Tensor weight = Wave(kSide, kSide, 1.0);
  const at::Tensor output = LinearProduct(input, weight, at::Tensor());
  output.sum().backward();
  EXPECT_TRUE(input.grad().defined());
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_FALSE(LinearProduct(input.detach(), weight, at::Tensor()).requires_grad());
}

TEST(LinearProduct, SmallProducts_AreThoseOfAtLinearBitForBit) {
  const at::Tensor weight = Wave(5, 7, 1.0);
  for (const int64_t rows : {0, 1, 9}) {
    const at::Tensor input = Wave(rows, 7, 0.0);
    EXPECT_TRUE(at::equal(LinearProduct(input, weight, at::Tensor()), at::linear(input, weight))) << rows;
  }
}

TEST(LinearProduct, WithinAutocast_ProductIsInItsFormat) {
  const AutocastScope autocast(Autocast::kBFloat16);
  const at::Tensor output = LinearProduct(Wave(kSide, kSide, 0.0), Wave(kSide, kSide, 1.0), at::Tensor());
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
}

}  // namespace
}  // namespace ssl
