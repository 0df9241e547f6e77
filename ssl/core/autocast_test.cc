// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/autocast.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include "gtest/gtest.h"

namespace ssl {
namespace {

at::ScalarType ProductType() { return at::ones({4, 4}).matmul(at::ones({4, 4})).scalar_type(); }

TEST(AutocastScopeTest, Enabled_ComputesProductsInBfloat16) {
  const AutocastScope scope(Autocast::kBFloat16);
  EXPECT_EQ(ProductType(), at::kBFloat16);
}

TEST(AutocastScopeTest, Disabled_ChangesNothing) {
  const AutocastScope scope(Autocast::kOff);
  EXPECT_EQ(ProductType(), at::kFloat);
}

TEST(AutocastScopeTest, EndsWithTheScope) {
  { const AutocastScope scope(Autocast::kBFloat16); }
  EXPECT_EQ(ProductType(), at::kFloat);
}

TEST(AutocastScopeTest, EachScopeSeesTheParameterAsItIs) {
  const at::Tensor parameter = at::ones({4, 4}).requires_grad_(true);
  const auto product = [&parameter] {
    const AutocastScope scope(Autocast::kBFloat16);
    return at::ones({4, 4}).matmul(parameter)[0][0].item<float>();
  };
  EXPECT_EQ(product(), 4.0f);
  parameter.detach().mul_(2.0);
  EXPECT_EQ(product(), 8.0f);
}

}  // namespace
}  // namespace ssl
