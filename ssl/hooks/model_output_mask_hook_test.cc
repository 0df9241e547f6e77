// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/model_output_mask_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <limits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch_source.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Has classes and no batches.
class ClassSource : public BatchSource {
 public:
  explicit ClassSource(absl::StatusOr<std::vector<int64_t>> classes) : classes_(std::move(classes)) {}

  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return 1; }
  absl::StatusOr<std::vector<int64_t>> Classes() const override {
    ++questions;
    return classes_;
  }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override { return nullptr; }

  mutable int questions = 0;

 private:
  absl::StatusOr<std::vector<int64_t>> classes_;
};

// [2, classes]: 0, 1, 2, ...
at::Tensor Scores(int64_t classes) { return at::arange(2 * classes, at::kFloat).view({2, classes}); }

std::vector<float> Values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

class ModelOutputMaskHookTest : public ::testing::Test {
 protected:
  absl::Status StartPhase(const BatchSource& source, bool training = false) {
    step_.state.training = training;
    step_.context.source = &source;
    return hook_.OnPhaseStart(step_.context);
  }
  absl::Status Forward(std::vector<at::Tensor> outputs) {
    step_.context.outputs = std::move(outputs);
    return hook_.OnForward(step_.context);
  }

  FakeStep step_;
  ModelOutputMaskHook hook_;
};

TEST_F(ModelOutputMaskHookTest, ScoresOfAbsentClasses_BecomeMinusInfinityInEveryOutput) {
  const ClassSource source({{1, 3}});
  ASSERT_OK(StartPhase(source));
  const at::Tensor first = Scores(4);
  const at::Tensor second = Scores(5);

  ASSERT_OK(Forward({first, second}));

  EXPECT_EQ(Values(first), (std::vector<float>{kMasked, 1, kMasked, 3, kMasked, 5, kMasked, 7}));
  EXPECT_EQ(Values(second), (std::vector<float>{kMasked, 1, kMasked, 3, kMasked, kMasked, 6, kMasked, 8, kMasked}));
  EXPECT_TRUE(step_.context.outputs[0].is_same(first)) << "scores are filled in place";
}

TEST_F(ModelOutputMaskHookTest, ScoresThatAutogradNeeds_AreCopied) {
  const ClassSource source({{0}});
  ASSERT_OK(StartPhase(source));
  const at::Tensor weight = at::ones({2}).set_requires_grad(true);
  const at::Tensor scores = (Scores(2) * weight).exp();
  const std::vector<float> before = Values(scores);

  ASSERT_OK(Forward({scores}));

  EXPECT_EQ(Values(scores), before);
  EXPECT_FALSE(step_.context.outputs[0].requires_grad());
  EXPECT_EQ(Values(step_.context.outputs[0]), (std::vector<float>{before[0], kMasked, before[2], kMasked}));
}

TEST_F(ModelOutputMaskHookTest, OutputsThatAreNoScores_AreLeftAlone) {
  const ClassSource source({{0}});
  ASSERT_OK(StartPhase(source));
  const at::Tensor map = at::ones({2, 3, 1, 1});

  ASSERT_OK(Forward({map}));

  EXPECT_TRUE(at::equal(map, at::ones({2, 3, 1, 1})));
}

TEST_F(ModelOutputMaskHookTest, TrainPhases_AreLeftAlone) {
  const ClassSource source({{0}});
  ASSERT_OK(StartPhase(source, /*training=*/true));
  const at::Tensor scores = Scores(3);

  ASSERT_OK(Forward({scores}));

  EXPECT_TRUE(at::equal(scores, Scores(3)));
  EXPECT_EQ(source.questions, 0);
}

TEST_F(ModelOutputMaskHookTest, Source_IsAskedOnce) {
  const ClassSource source({{0}});
  for (int phase = 0; phase < 3; ++phase) {
    ASSERT_OK(StartPhase(source));
    ASSERT_OK(Forward({Scores(2)}));
  }
  EXPECT_EQ(source.questions, 1);
}

TEST_F(ModelOutputMaskHookTest, ClassWithoutAScore_IsNamedWithBothNumbers) {
  const ClassSource source({{0, 12}});
  ASSERT_OK(StartPhase(source));

  EXPECT_THAT(Forward({Scores(10)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("config.METERS.model_output_mask: the test split has class 12"),
                             HasSubstr("scores of 10 classes, expected classes in [0, 10)"))));
  EXPECT_THAT(Forward({Scores(10)}), StatusIs(absl::StatusCode::kInvalidArgument)) << "a second time as well";
  EXPECT_OK(Forward({Scores(13)}));
}

TEST_F(ModelOutputMaskHookTest, NegativeClass_IsNamed) {
  const ClassSource source({{-1, 0}});
  ASSERT_OK(StartPhase(source));

  EXPECT_THAT(Forward({Scores(2)}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has class -1, but")));
}

TEST_F(ModelOutputMaskHookTest, SourceThatCannotTell_IsReportedWithTheKey) {
  EXPECT_THAT(StartPhase(ClassSource(absl::UnimplementedError("a host's source"))),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("config.METERS.model_output_mask needs the classes of the test split: a host's")));
}

TEST_F(ModelOutputMaskHookTest, HalfPrecisionScores_AreFilled) {
  const ClassSource source({{1}});
  ASSERT_OK(StartPhase(source));
  const at::Tensor scores = Scores(2).to(at::kBFloat16);

  ASSERT_OK(Forward({scores}));

  EXPECT_EQ(Values(scores.to(at::kFloat)), (std::vector<float>{kMasked, 1, kMasked, 3}));
}

}  // namespace
}  // namespace ssl
