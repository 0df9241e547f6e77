// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/update_key.h"

#include <ATen/ops/zeros.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/batch.h"
#include "ssl/core/optimizer.h"

namespace ssl {
namespace {

UpdateKey KeyOf(const Batch& batch) {
  UpdateKey key;
  key.AddLayout("the batch", batch);
  return key;
}

UpdateKey KeyOf(const ParameterGroup& group) {
  UpdateKey key;
  key.AddGroups({group});
  return key;
}

TEST(UpdateKey, Difference_NamesTheFirstPart) {
  UpdateKey key;
  key.Add("a", {1, 2});
  key.Add("b", {3});
  UpdateKey same;
  same.Add("a", {1, 2});
  EXPECT_EQ(key.Difference(same), "b") << "which the other lacks";
  EXPECT_EQ(same.Difference(key), "b");
  same.Add("b", {3});
  EXPECT_EQ(key.Difference(same), "");
  UpdateKey other;
  other.Add("a", {1});
  EXPECT_EQ(key.Difference(other), "a");
  EXPECT_EQ(UpdateKey().Difference(UpdateKey()), "");
}

TEST(UpdateKey, Layout_IsTypeSizesAndStridesOfWhatThereIs) {
  Batch batch;
  batch.views = {at::zeros({2, 3, 4, 4})};
  const UpdateKey key = KeyOf(batch);
  Batch other = batch;
  other.views = {at::zeros({2, 3, 4, 4})};
  EXPECT_EQ(key.Difference(KeyOf(other)), "") << "values and memory do not count";
  other.views = {at::zeros({1, 3, 4, 4})};
  EXPECT_EQ(key.Difference(KeyOf(other)), "the batch");
  other.views = {at::zeros({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast)};
  EXPECT_EQ(key.Difference(KeyOf(other)), "the batch");
  other.views = {at::zeros({2, 3, 4, 4}, at::kDouble)};
  EXPECT_EQ(key.Difference(KeyOf(other)), "the batch");
  other = batch;
  other.targets = at::zeros({2}, at::kLong);
  EXPECT_EQ(key.Difference(KeyOf(other)), "the batch");
  other = batch;
  other.named_inputs["left"] = at::zeros({2});
  const UpdateKey left = KeyOf(other);
  EXPECT_EQ(key.Difference(left), "the batch");
  other.named_inputs = {{"right", at::zeros({2})}};
  EXPECT_EQ(left.Difference(KeyOf(other)), "the batch");
}

TEST(UpdateKey, Groups_AreWhatIsDecidedOnTheHost) {
  ParameterGroup group{"regularized", {"a"}, {at::zeros({2}).set_requires_grad(true)}, 0.1, 0.01};
  const UpdateKey key = KeyOf(group);
  group.learning_rate = 0.2;
  EXPECT_EQ(key.Difference(KeyOf(group)), "") << "a tensor has it";
  ParameterGroup other = group;
  other.weight_decay = 0.02;
  EXPECT_EQ(key.Difference(KeyOf(other)), "the weight decay of parameter group regularized");
  other = group;
  other.momentum = 0.5;
  EXPECT_EQ(key.Difference(KeyOf(other)), "the momentum of parameter group regularized");
  const std::string parameters = "where the parameters lie, or which of them train";
  other = group;
  other.parameters = {at::zeros({2}).set_requires_grad(true)};
  EXPECT_EQ(key.Difference(KeyOf(other)), parameters);
  group.parameters[0].set_requires_grad(false);
  EXPECT_EQ(key.Difference(KeyOf(group)), parameters);
}

}  // namespace
}  // namespace ssl
