// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/golden.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl::golden {
namespace {

using ::testing::HasSubstr;

Output ScalarOutput(double f64, double f32) {
  Output output;
  output.kind = Output::Kind::kScalar;
  output.f64 = f64;
  output.f32 = f32;
  return output;
}

Output TensorOutput(double value, double f32_dev, double absmax) {
  Output output;
  output.kind = Output::Kind::kTensor;
  output.tensor = at::full({2, 3}, value, at::kDouble);
  output.f32_dev = f32_dev;
  output.absmax = absmax;
  return output;
}

TEST(GoldenTolerance, IsTheLargestOfTheThreeRules) {
  EXPECT_DOUBLE_EQ(Float32Tolerance(ScalarOutput(2.0, 2.0)), 2e-5);
  EXPECT_DOUBLE_EQ(Float32Tolerance(ScalarOutput(0.0, 0.25)), 4.0);
  EXPECT_DOUBLE_EQ(Float32Tolerance(ScalarOutput(0.0, 0.0)), 1e-7);
  EXPECT_DOUBLE_EQ(Float32Tolerance(TensorOutput(1.0, 0.0, 3.0)), 3e-5);
  EXPECT_DOUBLE_EQ(Float32Tolerance(TensorOutput(1.0, 1e-3, 3.0)), 16e-3);
}

TEST(GoldenMatches, ValueBeyondTheTolerance_Fails) {
  EXPECT_TRUE(Matches(2.00001, ScalarOutput(2.0, 2.0)));
  EXPECT_FALSE(Matches(2.00003, ScalarOutput(2.0, 2.0)));
  EXPECT_TRUE(Matches(at::full({2, 3}, 1.0), TensorOutput(1.0, 0.0, 1.0)));
  EXPECT_FALSE(Matches(at::full({2, 3}, 1.001), TensorOutput(1.0, 0.0, 1.0)));
  EXPECT_FALSE(MatchesExactly(at::full({2, 3}, 1.001), TensorOutput(1.0, 0.0, 1.0)));
}

TEST(GoldenMatches, NanNeverMatches) {
  EXPECT_FALSE(Matches(std::nan(""), ScalarOutput(2.0, 2.0)));
  EXPECT_FALSE(Matches(at::full({2, 3}, std::nan("")), TensorOutput(1.0, 0.0, 1.0)));
}

TEST(GoldenMatches, AnotherShapeOrKind_Fails) {
  EXPECT_FALSE(Matches(at::full({3, 2}, 1.0), TensorOutput(1.0, 0.0, 1.0)));
  EXPECT_FALSE(Matches(at::Tensor(), TensorOutput(1.0, 0.0, 1.0)));
  EXPECT_FALSE(Matches(1.0, TensorOutput(1.0, 0.0, 1.0)));
}

TEST(GoldenCategory, UnknownCategory_IsNotFound) {
  EXPECT_THAT(ReadCategory("alchemy"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no category 'alchemy'")));
}

TEST(GoldenCategory, CasesHaveNamesOpsParametersAndSteps) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Case> cases, ReadCategory("swav_loss"));
  ASSERT_FALSE(cases.empty());
  for (const Case& golden_case : cases) {
    EXPECT_FALSE(golden_case.op.empty());
    EXPECT_GT(golden_case.Int("batch"), 0);
    EXPECT_EQ(golden_case.Int("no_such_parameter", 7), 7);
    ASSERT_FALSE(golden_case.steps.empty());
    EXPECT_EQ(golden_case.steps[0].inputs.at("scores0").dim(), 2);
    EXPECT_EQ(golden_case.steps[0].outputs.at("loss").kind, Output::Kind::kScalar);
  }
}

TEST(GoldenCategory, OpThatNobodyRuns_IsAFailurePerCase) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Case> cases, ReadCategory("swav_train"));
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    RunCategory("swav_train", {});
  }
  ASSERT_EQ(failures.size(), static_cast<int>(cases.size()) + 1) << "one per case, and one because none ran";
  EXPECT_THAT(failures.GetTestPartResult(0).message(), HasSubstr("op 'swav_train' is not known"));
}

TEST(GoldenCategory, CategoryOfWhichNothingRuns_IsAFailure) {
  EXPECT_NONFATAL_FAILURE(RunCategory("swav_train", {}, {"swav_train"}), "run");
}

TEST(GoldenCategory, EachCaseRunsOnce) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Case> cases, ReadCategory("phases"));
  size_t runs = 0;
  RunCategory("phases", {{"phases", [&runs](const Case&) { ++runs; }}});
  EXPECT_EQ(runs, cases.size());
}

}  // namespace
}  // namespace ssl::golden
