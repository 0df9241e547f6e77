// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/heads/reshaping_heads.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(IdentityHead, ReturnsItsInput) {
  const std::unique_ptr<Head> head = MakeIdentityHead();
  const at::Tensor features = at::arange(6, at::kFloat).view({2, 3});
  EXPECT_TRUE(at::equal(head->Forward(features)[0], features));
  EXPECT_EQ(head->input_dim(), 0);
  EXPECT_EQ(head->OutputDim(7), 7);
}

TEST(SiameseConcatView, PutsConsecutiveRowsSideBySide) {
  const std::unique_ptr<Head> head = MakeSiameseConcatView(3);
  const at::Tensor rows = at::arange(12, at::kFloat).view({6, 2});
  const at::Tensor expected = at::arange(12, at::kFloat).view({2, 6});
  EXPECT_TRUE(at::equal(head->Forward(rows)[0], expected));
  EXPECT_TRUE(at::equal(head->Forward(rows.view({6, 2, 1, 1}))[0], expected));
  EXPECT_EQ(head->OutputDim(2), 6);
}

TEST(SiameseConcatView, RowsThatDoNotDivide_AreAnError) {
  try {
    MakeSiameseConcatView(3)->Forward(at::arange(8, at::kFloat).view({4, 2}));
    FAIL() << "no error";
  } catch (const c10::ValueError& error) {
    EXPECT_THAT(error.what_without_backtrace(),
                ::testing::HasSubstr("gets 4 rows, expected a multiple of num_towers, 3"));
  }
}

}  // namespace
}  // namespace ssl
