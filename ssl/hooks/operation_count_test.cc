// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/operation_count.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <stdexcept>

#include "gtest/gtest.h"
#include "ssl/models/layers.h"
#include "ssl/models/linear_product.h"

namespace ssl {
namespace {

// The products of a convolution, one by one.
int64_t CountByLoops(int64_t batch, int64_t in, int64_t out, int64_t groups, int64_t kernel, int64_t side) {
  int64_t products = 0;
  for (int64_t picture = 0; picture < batch; ++picture) {
    for (int64_t channel = 0; channel < out; ++channel) {
      for (int64_t pixel = 0; pixel < side * side; ++pixel) {
        for (int64_t input = 0; input < in / groups; ++input) products += kernel * kernel;
      }
    }
  }
  return products;
}

void ExpectCount(const OperationCount& count, int64_t multiply_adds, int64_t activations) {
  EXPECT_EQ(count.multiply_adds, multiply_adds);
  EXPECT_EQ(count.activations, activations);
}

TEST(CountOperations, Convolution_CountsTheProductsOfItsLoops) {
  for (const int64_t groups : {1, 3}) {
    const at::Tensor weight = at::ones({9, 6 / groups, 3, 3});
    const OperationCount count = CountOperations([&] {
      at::conv2d(at::ones({2, 6, 8, 8}), weight, at::ones({9}), /*stride=*/2, /*padding=*/1, /*dilation=*/1, groups);
    });

    ExpectCount(count, CountByLoops(2, 6, 9, groups, 3, 4), 2 * 9 * 4 * 4);
  }
}

// As the definition has them, by whichever algorithm.
TEST(CountOperations, ConvolutionOfALayer_CountsTheProductsOfItsLoops) {
  for (const int64_t batch : {1, 8}) {
    const ConvLayer layer = {at::ones({64, 32, 3, 3}), /*bias=*/{}, /*stride=*/1, /*padding=*/1, /*groups=*/1};
    const OperationCount count = CountOperations([&] { layer.Forward(at::ones({batch, 32, 8, 8})); });

    ExpectCount(count, CountByLoops(batch, 32, 64, 1, 3, 8), batch * 64 * 8 * 8);
  }
}

// Which library it takes depends on its size.
TEST(CountOperations, LinearProducts_CountAsOtherMatrixProducts) {
  for (const int64_t rows : {4, 4096}) {
    const at::Tensor input = at::ones({rows, 64});
    ExpectCount(CountOperations([&] {
                  LinearProduct(input, at::ones({32, 64}), at::ones({32}));
                }),
                rows * 64 * 32, rows * 32);
  }
}

TEST(CountOperations, MatrixProducts_CountRowsTimesSumTimesColumns) {
  const at::Tensor weight = at::ones({5, 3});
  ExpectCount(CountOperations([&] { at::linear(at::ones({4, 3}), weight, at::ones({5})); }), 4 * 3 * 5, 4 * 5);
  ExpectCount(CountOperations([&] { at::linear(at::ones({4, 3}), weight); }), 4 * 3 * 5, 4 * 5);
  ExpectCount(CountOperations([&] { at::linear(at::ones({2, 4, 3}), weight, at::ones({5})); }), 2 * 4 * 3 * 5, 40);
  ExpectCount(CountOperations([&] {
                at::matmul(at::ones({2, 7, 4, 3}), at::ones({2, 7, 3, 5}));
              }),
              14 * 4 * 3 * 5, 14 * 4 * 5);
  ExpectCount(CountOperations([&] {
                at::ones({2, 4, 5}).baddbmm(at::ones({2, 4, 3}), at::ones({2, 3, 5}));
              }),
              2 * 4 * 3 * 5, 2 * 4 * 5);
  ExpectCount(CountOperations([&] {
                at::einsum("bij,bkj->bik", {at::ones({2, 4, 3}), at::ones({2, 5, 3})});
              }),
              2 * 4 * 3 * 5, 2 * 4 * 5);
}

TEST(CountOperations, TrainedWeightsInHalfPrecision_CountOnce) {
  const at::Tensor weight = at::ones({5, 3}, at::kBFloat16).set_requires_grad(true);
  ExpectCount(CountOperations([&] { at::linear(at::ones({4, 3}, at::kBFloat16), weight); }), 4 * 3 * 5, 4 * 5);
}

TEST(CountOperations, OtherOperations_CountNothing) {
  ExpectCount(CountOperations([] { at::ones({4, 4}).add_(1.0).relu_().sum(); }), 0, 0);
}

TEST(CountOperations, Count_EndsWithTheFunction) {
  const OperationCount count = CountOperations([] { at::mm(at::ones({2, 2}), at::ones({2, 2})); });
  at::mm(at::ones({2, 2}), at::ones({2, 2}));

  ExpectCount(count, 8, 4);
  ExpectCount(CountOperations([] {}), 0, 0);
}

TEST(CountOperations, Exceptions_Pass) {
  EXPECT_THROW(CountOperations([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(CountOperations([] { at::mm(at::ones({2, 2}), at::ones({3, 2})); }), c10::Error);
  ExpectCount(CountOperations([] { at::mm(at::ones({2, 2}), at::ones({2, 2})); }), 8, 4);
}

}  // namespace
}  // namespace ssl
