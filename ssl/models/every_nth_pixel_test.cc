// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/every_nth_pixel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>

#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

at::Tensor Map(at::IntArrayRef shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kFloat) * 0.73).reshape(shape).contiguous(at::MemoryFormat::ChannelsLast);
}

TEST(EveryNthPixel, PixelsAndGradient_AreThoseOfSlices) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{2, 3, 8, 8}, {3, 16, 7, 5}, {1, 2, 1, 4}}) {
    for (const int64_t n : {1, 2, 3}) {
      const at::Tensor input = Map(shape).requires_grad_();
      const at::Tensor sliced = Map(shape).requires_grad_();
      const at::Tensor output = EveryNthPixel(input, n);
      const at::Tensor expected = sliced.slice(2, 0, shape[2], n).slice(3, 0, shape[3], n);
      EXPECT_TRUE(at::equal(output, expected)) << input.sizes() << " " << n;
      output.backward(Map(output.sizes()));
      expected.backward(Map(output.sizes()));
      EXPECT_TRUE(at::equal(input.grad(), sliced.grad())) << input.sizes() << " " << n;
    }
  }
}

TEST(EveryNthPixel, OutputAndGradient_AreChannelsLast) {
  const at::Tensor leaf = Map({2, 4, 8, 8}).requires_grad_();
  const at::Tensor output = EveryNthPixel(leaf * 1.0, 2);
  EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
  output.sum().backward();
  EXPECT_TRUE(leaf.grad().is_contiguous(at::MemoryFormat::ChannelsLast));
}

}  // namespace
}  // namespace ssl
