// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/ema.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max.h>
#include <ATen/ops/ones.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

TEST(EmaUpdate, Average_MovesTowardsTheValue) {
  const std::vector<at::Tensor> averages = {at::full({2, 3}, 1.0), at::full({4}, -2.0)};

  EmaUpdate(averages, {at::full({2, 3}, 3.0), at::full({4}, 2.0)}, 0.75);

  EXPECT_TRUE(at::equal(averages[0], at::full({2, 3}, 1.5)));
  EXPECT_TRUE(at::equal(averages[1], at::full({4}, -1.0)));
}

TEST(EmaUpdate, DecayOfZeroAndOne_AreCopyAndNothing) {
  const at::Tensor average = at::full({3}, 1.0);
  const at::Tensor value = at::full({3}, 0.1);

  EmaUpdate({average}, {value}, 1.0);
  EXPECT_TRUE(at::equal(average, at::full({3}, 1.0)));

  EmaUpdate({average}, {value}, 0.0);
  EXPECT_TRUE(at::equal(average, value));
}

TEST(EmaUpdate, OtherTypes_AreCopied) {
  const std::vector<at::Tensor> averages = {at::full({2}, 1.0), at::full({}, 5, at::kLong),
                                            at::full({2}, 1.0, at::kDouble)};

  EmaUpdate(averages, {at::full({2}, 2.0), at::full({}, 9, at::kLong), at::full({2}, 4.0, at::kDouble)}, 0.5);

  EXPECT_TRUE(at::equal(averages[0], at::full({2}, 1.5)));
  EXPECT_EQ(averages[1].item<int64_t>(), 9);
  EXPECT_TRUE(at::equal(averages[2], at::full({2}, 4.0, at::kDouble)));
}

TEST(EmaUpdate, ValuesWithGradients_LeaveNoGraph) {
  const at::Tensor average = at::ones({2});

  EmaUpdate({average}, {at::ones({2}).set_requires_grad(true)}, 0.5);

  EXPECT_FALSE(average.requires_grad());
}

TEST(EmaUpdate, EmptyLists_AreFine) { EmaUpdate({}, {}, 0.5); }

TEST(EmaUpdate, ListsOfDifferentLength_Throw) { EXPECT_THROW(EmaUpdate({at::ones({2})}, {}, 0.5), c10::ValueError); }

void CheckModelEma(const golden::Case& golden_case) {
  std::vector<std::string> names;
  std::vector<at::Tensor> averages;
  for (const auto& [name, tensor] : golden_case.inputs) {
    names.emplace_back(absl::StripPrefix(name, "init."));
    averages.push_back(tensor.clone());
  }
  for (const golden::Step& step : golden_case.steps) {
    std::vector<at::Tensor> values;
    for (const std::string& name : names) values.push_back(step.Input("value." + name));

    EmaUpdate(averages, values, golden_case.Double("decay"));

    for (size_t i = 0; i < names.size(); ++i) {
      // The golden run is one in float32 and tells no magnitude: a few units in the last place of the largest value.
      const at::Tensor& expected = step.Expected("ema." + names[i]).tensor;
      const double error = at::max(at::abs(averages[i] - expected)).item<double>();
      ASSERT_EQ(averages[i].sizes(), expected.sizes()) << names[i];
      EXPECT_LE(error, 4e-7 * at::max(at::abs(expected)).item<double>()) << names[i];
    }
  }
}

TEST(EmaGolden, AveragesOfAModelMatch) {
  golden::RunCategory("ema", {{"model_ema", &CheckModelEma}}, /*out_of_scope=*/{"up_ema"});
}

}  // namespace
}  // namespace ssl
