// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/same_layout.h"

#include <ATen/ops/empty.h>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(SameLayout, IsThatOfElements) {
  const at::Tensor tensor = at::empty({4, 6, 3, 3});
  EXPECT_TRUE(SameLayout(tensor, at::empty({4, 6, 3, 3})));
  EXPECT_FALSE(SameLayout(tensor, tensor.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(SameLayout(tensor, at::empty({4, 6, 9})));
  EXPECT_FALSE(SameLayout(tensor, at::empty({4, 5, 3, 3})));
}

TEST(SameLayout, StridesOfDimensionsOfOneElement_SayNothing) {
  const at::Tensor kernel = at::empty({8, 4, 1, 1});
  const at::Tensor gradient =
      at::empty({8, 4, 1, 1}, at::TensorOptions().memory_format(at::MemoryFormat::ChannelsLast));
  ASSERT_NE(kernel.strides(), gradient.strides());
  EXPECT_TRUE(SameLayout(kernel, gradient));
}

}  // namespace
}  // namespace ssl
