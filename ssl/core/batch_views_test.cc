// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/batch_views.h"

#include <ATen/ops/arange.h>

#include "gtest/gtest.h"

namespace ssl {
namespace {

// [rows, 1, 1, 1] with the numbers from `first` on.
at::Tensor Rows(int64_t first, int64_t rows) {
  return at::arange(first, first + rows, at::kFloat).reshape({rows, 1, 1, 1});
}

// The numbers of a view.
std::vector<float> NumbersOf(const at::Tensor& view) {
  std::vector<float> numbers;
  for (int64_t row = 0; row < view.size(0); ++row) numbers.push_back(view[row].item<float>());
  return numbers;
}

TEST(BatchViews, ViewsByThemselves_AreWhatTheyAre) {
  Batch batch;
  batch.indices = at::arange(2);
  batch.views = {Rows(0, 2), Rows(10, 2)};
  const std::vector<at::Tensor> views = ViewsOf(batch);
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(NumbersOf(views[1]), (std::vector<float>{10, 11}));
  EXPECT_TRUE(HasARowForEachSample(batch));
}

TEST(BatchViews, JoinedViews_AreTakenApart) {
  Batch batch;
  batch.indices = at::arange(2);
  batch.views = {Rows(0, 6)};
  const std::vector<at::Tensor> views = ViewsOf(batch);
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(NumbersOf(views[0]), (std::vector<float>{0, 3}));
  EXPECT_EQ(NumbersOf(views[2]), (std::vector<float>{2, 5}));
  EXPECT_FALSE(HasARowForEachSample(batch));
}

TEST(BatchViews, WithoutIndices_ARowIsASample) {
  Batch batch;
  batch.views = {Rows(0, 3), Rows(10, 3)};
  EXPECT_TRUE(HasARowForEachSample(batch));
  ASSERT_EQ(ViewsOf(batch).size(), 2u);
  EXPECT_EQ(NumbersOf(ViewsOf(batch)[1]), (std::vector<float>{10, 11, 12}));
}

TEST(BatchViews, NamedInputs_AreViewsToo) {
  Batch batch;
  batch.indices = at::arange(2);
  batch.named_inputs = {{"images", Rows(0, 2)}, {"patches", Rows(10, 4)}};
  const std::vector<at::Tensor> views = ViewsOf(batch);
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(NumbersOf(views[0]), (std::vector<float>{0, 1}));
  EXPECT_EQ(NumbersOf(views[2]), (std::vector<float>{11, 13}));
}

}  // namespace
}  // namespace ssl
