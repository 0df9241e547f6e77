// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/finite_check.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class FiniteCheckTest : public ::testing::TestWithParam<at::ScalarType> {};

// Every position around the blocks of the loop, for each kind of value.
TEST_P(FiniteCheckTest, FindsOneValueAnywhere) {
  for (const int64_t size : {1, 2, 255, 256, 257, 600}) {
    const at::Tensor tensor = at::ones({size}, GetParam());
    EXPECT_EQ(CountNonFinite(tensor), 0);
    for (const double value : {kInfinity, -kInfinity, kNaN}) {
      for (int64_t i = 0; i<size; i += size> 2 ? 17 : 1) {
        tensor[i].fill_(value);
        EXPECT_EQ(CountNonFinite(tensor), 1) << size << " values, at " << i;
        tensor[i].fill_(1.0);
      }
    }
  }
}

TEST_P(FiniteCheckTest, LargestAndSmallestValuesAreFinite) {
  const at::Tensor tensor = at::zeros({300}, GetParam());
  tensor[0].fill_(GetParam() == at::kHalf ? 65504.0 : 3.0e38);
  tensor[1].fill_(GetParam() == at::kHalf ? -65504.0 : -3.0e38);
  tensor[2].fill_(1.0e-45);
  EXPECT_EQ(CountNonFinite(tensor), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, FiniteCheckTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf));

TEST(FiniteCheck, CountsAll) {
  const at::Tensor tensor = at::zeros({1000}, at::kFloat);
  tensor.fill_(kNaN);
  EXPECT_EQ(CountNonFinite(tensor), 1000);
}

TEST(FiniteCheck, StridesAndOrderDoNotMatter) {
  const at::Tensor tensor = at::ones({4, 6, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  tensor[3][5][4][4].fill_(kInfinity);
  EXPECT_EQ(CountNonFinite(tensor), 1);
  // What a view leaves out does not count.
  EXPECT_EQ(CountNonFinite(tensor.slice(0, 0, 3)), 0);
  EXPECT_EQ(CountNonFinite(tensor.slice(3, 0, 5, 2)), 1);
  EXPECT_EQ(CountNonFinite(tensor.slice(3, 0, 4, 2)), 0);
  EXPECT_EQ(CountNonFinite(at::ones({1}).mul(kInfinity).expand({7})), 7);
}

TEST(FiniteCheck, OtherKindsAreFinite) {
  EXPECT_EQ(CountNonFinite(at::Tensor()), 0);
  EXPECT_EQ(CountNonFinite(at::empty({0})), 0);
  EXPECT_EQ(CountNonFinite(at::arange(5)), 0);
}

TEST(FiniteCheck, TensorsOfADevice_AreLookedAtThere) {
  StandinDevice::Install();
  const at::Device device = StandinDevice::device();
  at::Tensor infinite = at::ones({2, 3}, at::TensorOptions(device).dtype(at::kBFloat16));
  infinite.select(0, 1).fill_(kInfinity);
  const at::Tensor large = at::full({4}, 1e38, at::TensorOptions(device));
  const at::Tensor nan = at::full({}, kNaN, at::TensorOptions(device).dtype(at::kDouble));
  const at::Tensor on_host = at::full({2}, kNaN, at::kFloat);
  const TransferLog log;
  EXPECT_EQ(HaveNonFinite({large, infinite, at::Tensor(), on_host, nan, at::ones({2}),
                           at::ones({4}, at::TensorOptions(device).dtype(at::kInt)),
                           at::empty({0}, at::TensorOptions(device))}),
            (std::vector<bool>{false, true, false, true, true, false, false, false}));
  EXPECT_THAT(log.reads(), testing::ElementsAre(testing::Pair("copy to the host of Bool [3]", 1)));
}

}  // namespace
}  // namespace ssl
