// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"

namespace ssl {
namespace {

at::ScalarType ProductType() { return at::ones({4, 4}).matmul(at::ones({4, 4})).scalar_type(); }

TEST(AutocastScopeTest, Enabled_ComputesProductsInItsFormat) {
  {
    const AutocastScope scope(Autocast::kBFloat16);
    EXPECT_EQ(ProductType(), at::kBFloat16);
  }
  const AutocastScope scope(Autocast::kFloat16);
  EXPECT_EQ(ProductType(), at::kHalf);
}

TEST(AutocastScopeTest, EndsWithTheScope) {
  { const AutocastScope scope(Autocast::kBFloat16); }
  EXPECT_EQ(ProductType(), at::kFloat);
}

TEST(AutocastScopeTest, Off_IsFloat32WhateverSurroundsIt) {
  const AutocastScope outer(Autocast::kBFloat16);
  {
    const AutocastScope off(Autocast::kOff);
    EXPECT_EQ(ProductType(), at::kFloat);
    const AutocastScope inner(Autocast::kFloat16);
    EXPECT_EQ(ProductType(), at::kHalf);
  }
  EXPECT_EQ(ProductType(), at::kBFloat16);
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

// A host program that computes in float16 of its own, without the cache.
class HostAutocastTest : public ::testing::Test {
 protected:
  HostAutocastTest() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    at::autocast::increment_nesting();
  }
  ~HostAutocastTest() override {
    at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    at::autocast::set_autocast_cache_enabled(true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

TEST_F(HostAutocastTest, HasItsSettingsBack) {
  for (const Autocast autocast : {Autocast::kOff, Autocast::kBFloat16, Autocast::kFloat16}) {
    for (const bool caches : {true, false}) {
      at::autocast::set_autocast_cache_enabled(caches);
      { const AutocastScope scope(autocast); }
      EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
      EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kHalf);
      EXPECT_EQ(at::autocast::is_autocast_cache_enabled(), caches);
    }
  }
  EXPECT_EQ(ProductType(), at::kHalf);
}

TEST_F(HostAutocastTest, ItsShortCopiesAreNotTaken_NorKeptOverAnUpdate) {
  const at::Tensor parameter = at::ones({4, 4}).requires_grad_(true);
  const auto product = [&parameter] { return at::ones({4, 4}).matmul(parameter); };
  EXPECT_EQ(product().scalar_type(), at::kHalf);
  {
    const AutocastScope scope(Autocast::kBFloat16);
    EXPECT_EQ(product().scalar_type(), at::kBFloat16);
    parameter.detach().mul_(2.0);
  }
  EXPECT_EQ(product().scalar_type(), at::kHalf);
  EXPECT_EQ(product()[0][0].item<float>(), 8.0f);
}

TEST(AutocastScopeTest, HoldsForTheAccelerator_AndEndsThereToo) {
  StandinDevice::Install();
  const at::Tensor ones = at::ones({4, 4}, StandinDevice::device());
  {
    const AutocastScope scope(Autocast::kBFloat16);
    EXPECT_EQ(ones.matmul(ones).scalar_type(), at::kBFloat16);
    {
      const AutocastScope off(Autocast::kOff);
      EXPECT_EQ(ones.matmul(ones).scalar_type(), at::kFloat);
    }
    EXPECT_EQ(ones.matmul(ones).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(ones.matmul(ones).scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace ssl
