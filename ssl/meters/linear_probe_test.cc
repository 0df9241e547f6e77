// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/linear_probe.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

struct Problem {
  at::Tensor train, train_labels, test, test_labels;
};

// Classes with means `distance` apart in noise of unit variance; features have very different scales.
Problem RandomProblem(int64_t samples, int64_t classes, double distance, uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const at::Tensor means = at::randn({classes, 6}, generator, at::kFloat).mul_(distance);
  const at::Tensor scale = at::arange(1, 7, at::kFloat).pow(3);
  Problem problem;
  for (auto [features, labels] :
       {std::pair(&problem.train, &problem.train_labels), std::pair(&problem.test, &problem.test_labels)}) {
    *labels = at::arange(samples, at::kLong).remainder(classes);
    *features =
        (means.index_select(0, *labels) + at::randn({samples, 6}, generator, at::kFloat)).mul_(scale).add_(100.0);
  }
  return problem;
}

absl::StatusOr<LinearProbeResult> Train(const Problem& problem, const LinearProbeOptions& options) {
  return TrainLinearProbe(problem.train, problem.train_labels, problem.test, problem.test_labels, options, StopToken());
}

using Matrix = std::vector<std::vector<double>>;

// Softmax regression with one learning rate, in plain loops and double precision, on rows as they are. The order of the
// samples is the one that the probe documents: the generator's first permutation gives the held out samples, then one
// permutation for each epoch, first of the others, then of all.
class Oracle {
 public:
  Oracle(const Problem& problem, const LinearProbeOptions& options, double rate)
      : problem_(problem), options_(options), rate_(rate) {
    classes_ = problem.train_labels.max().item<int64_t>() + 1;
    dimensions_ = problem.train.size(1) + 1;  // the last one is the bias
  }

  // Held out top-1, and test top-1 after another training, on all samples.
  std::pair<double, double> Run() {
    const at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options_.seed));
    const int64_t samples = problem_.train.size(0);
    const at::Tensor order = at::randperm(samples, generator, at::kLong);
    const int64_t held_out = std::llround(static_cast<double>(samples) * options_.held_out_fraction);
    TrainOn(order.slice(0, held_out), generator);
    const double held_out_top1 = Accuracy(problem_.train, problem_.train_labels, order.slice(0, 0, held_out));
    TrainOn(order, generator);
    return {held_out_top1, Accuracy(problem_.test, problem_.test_labels, at::arange(problem_.test.size(0), at::kLong))};
  }

 private:
  void TrainOn(const at::Tensor& positions, const at::Generator& generator) {
    weight_.assign(classes_, std::vector<double>(dimensions_, 0.0));
    momentum_ = weight_;
    const int64_t used = positions.size(0);
    const int64_t batches = (used + options_.batch_size - 1) / options_.batch_size;
    for (int64_t epoch = 0; epoch < options_.num_epochs; ++epoch) {
      const at::Tensor shuffled = positions.index_select(0, at::randperm(used, generator, at::kLong));
      for (int64_t batch = 0; batch < batches; ++batch) {
        const double done = static_cast<double>(epoch * batches + batch) / (options_.num_epochs * batches);
        Step(shuffled.slice(0, batch * options_.batch_size, (batch + 1) * options_.batch_size),
             rate_ * 0.5 * (1.0 + std::cos(M_PI * done)));
      }
    }
  }

  std::vector<double> Row(const at::Tensor& features, int64_t row) const {
    std::vector<double> values;
    for (int64_t i = 0; i + 1 < dimensions_; ++i) values.push_back(features[row][i].item<double>());
    values.push_back(1.0);
    return values;
  }

  std::vector<double> Scores(const std::vector<double>& row) const {
    std::vector<double> scores(classes_, 0.0);
    for (int64_t c = 0; c < classes_; ++c) {
      for (int64_t i = 0; i < dimensions_; ++i) scores[c] += weight_[c][i] * row[i];
    }
    return scores;
  }

  void Step(const at::Tensor& positions, double rate) {
    Matrix gradient(classes_, std::vector<double>(dimensions_, 0.0));
    for (int64_t b = 0; b < positions.size(0); ++b) {
      const int64_t position = positions[b].item<int64_t>();
      const std::vector<double> row = Row(problem_.train, position);
      const std::vector<double> scores = Scores(row);
      double sum = 0.0;
      for (const double score : scores) sum += std::exp(score);
      for (int64_t c = 0; c < classes_; ++c) {
        const bool own = problem_.train_labels[position].item<int64_t>() == c;
        const double error = (std::exp(scores[c]) / sum - (own ? 1.0 : 0.0)) / static_cast<double>(positions.size(0));
        for (int64_t i = 0; i < dimensions_; ++i) gradient[c][i] += error * row[i];
      }
    }
    for (int64_t c = 0; c < classes_; ++c) {
      for (int64_t i = 0; i < dimensions_; ++i) {
        if (i + 1 < dimensions_) gradient[c][i] += options_.weight_decay * weight_[c][i];
        momentum_[c][i] = options_.momentum * momentum_[c][i] + gradient[c][i];
        weight_[c][i] -= rate * (gradient[c][i] + options_.momentum * momentum_[c][i]);
      }
    }
  }

  double Accuracy(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& positions) const {
    double hits = 0.0;
    for (int64_t i = 0; i < positions.size(0); ++i) {
      const int64_t position = positions[i].item<int64_t>();
      const std::vector<double> scores = Scores(Row(features, position));
      const int64_t best = std::max_element(scores.begin(), scores.end()) - scores.begin();
      hits += best == labels[position].item<int64_t>();
    }
    return hits / static_cast<double>(positions.size(0));
  }

  const Problem& problem_;
  const LinearProbeOptions& options_;
  const double rate_;
  int64_t classes_ = 0;
  int64_t dimensions_ = 0;
  Matrix weight_;
  Matrix momentum_;
};

TEST(LinearProbeTest, AgreesWithPlainLoops) {
  Problem problem = RandomProblem(200, 4, 1.0, 1);
  problem.train.div_(200.0);
  problem.test.div_(200.0);
  LinearProbeOptions options;
  options.learning_rates = {0.02, 0.2, 1.0};
  options.num_epochs = 3;
  options.batch_size = 32;
  options.weight_decay = 0.01;
  options.normalize = false;
  options.held_out_fraction = 0.25;
  options.seed = 5;
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult result, Train(problem, options));
  ASSERT_EQ(result.rates.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto [held_out, test] = Oracle(problem, options, options.learning_rates[i]).Run();
    EXPECT_DOUBLE_EQ(result.rates[i].held_out_top1, held_out) << i;
    if (i == result.best) {
      EXPECT_DOUBLE_EQ(result.top1, test);
    }
  }
  EXPECT_EQ(result.top5, 1.0);  // four classes
}

TEST(LinearProbeTest, SeparableClasses_AreLearnt) {
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult result, Train(RandomProblem(1000, 10, 5.0, 2), {}));
  EXPECT_GT(result.top1, 0.95);
  EXPECT_GE(result.top5, result.top1);
}

TEST(LinearProbeTest, Normalize_MakesScalesIrrelevant) {
  Problem problem = RandomProblem(500, 5, 1.0, 3);
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult original, Train(problem, {}));
  problem.train.mul_(64.0);
  problem.test.mul_(64.0);
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult scaled, Train(problem, {}));
  EXPECT_EQ(scaled.best, original.best);
  EXPECT_NEAR(scaled.top1, original.top1, 0.005);
}

TEST(LinearProbeTest, ConstantFeature_IsNoNan) {
  Problem problem = RandomProblem(200, 4, 5.0, 4);
  problem.train.select(1, 2).fill_(7.0);
  problem.test.select(1, 2).fill_(7.0);
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult result, Train(problem, {}));
  EXPECT_FALSE(result.rates[result.best].diverged);
  EXPECT_GT(result.top1, 0.8);
}

TEST(LinearProbeTest, SameSeed_GivesTheSame) {
  const Problem problem = RandomProblem(300, 6, 0.5, 5);
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult first, Train(problem, {}));
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult second, Train(problem, {}));
  EXPECT_EQ(first.top1, second.top1);
  for (size_t i = 0; i < first.rates.size(); ++i) {
    EXPECT_EQ(first.rates[i].held_out_top1, second.rates[i].held_out_top1);
  }
}

TEST(LinearProbeTest, RateThatDiverges_IsNeverChosenAndHarmsNoOther) {
  const Problem problem = RandomProblem(300, 3, 5.0, 6);
  LinearProbeOptions options;
  options.learning_rates = {1e38, 0.03};
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult result, Train(problem, options));
  EXPECT_TRUE(result.rates[0].diverged);
  EXPECT_EQ(result.best, 1u);
  options.learning_rates = {0.03};
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult alone, Train(problem, options));
  EXPECT_EQ(result.top1, alone.top1);
  options.learning_rates = {1e38};
  EXPECT_THAT(Train(problem, options), StatusIs(absl::StatusCode::kInternal, HasSubstr("all learning rates diverged")));
}

// A class that the permutation leaves to the held out samples alone is known to the tested classifier all the same.
TEST(LinearProbeTest, HeldOutSamples_AreLearntInTheEnd) {
  Problem problem = RandomProblem(40, 2, 20.0, 9);
  LinearProbeOptions options;
  options.learning_rates = {0.1};
  options.held_out_fraction = 0.25;
  const at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options.seed));
  const at::Tensor held_out = at::randperm(40, generator, at::kLong).slice(0, 0, 10);
  problem.train.index_fill_(0, held_out, -1000.0);
  problem.train_labels.index_fill_(0, held_out, 2);
  problem.test = problem.train.index_select(0, held_out);
  problem.test_labels = problem.train_labels.index_select(0, held_out);
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult result, Train(problem, options));
  EXPECT_EQ(result.rates[0].held_out_top1, 0.0);
  EXPECT_EQ(result.top1, 1.0);
}

TEST(LinearProbeTest, Progress_CountsTheEpochsOfBothTrainings) {
  LinearProbeOptions options;
  options.num_epochs = 2;
  std::vector<int64_t> epochs;
  options.on_progress = [&epochs](int64_t done) { epochs.push_back(done); };
  ASSERT_OK(Train(RandomProblem(20, 2, 1.0, 8), options).status());
  EXPECT_EQ(epochs, (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST(LinearProbeTest, ShapesThatDoNotFit_AreRefused) {
  Problem problem = RandomProblem(20, 2, 1.0, 7);
  problem.test = at::zeros({20, 5});
  EXPECT_THAT(
      Train(problem, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("training features are [20, 6] with 20 labels, test features [20, 5] with 20 labels")));
}

TEST(LinearProbeTest, StopRequest_IsCancelled) {
  const Problem problem = RandomProblem(20, 2, 1.0, 8);
  StopToken stop;
  LinearProbeOptions options;
  options.on_progress = [&stop](int64_t epochs) { stop.Request(kStopUser); };
  EXPECT_THAT(
      TrainLinearProbe(problem.train, problem.train_labels, problem.test, problem.test_labels, options, stop).status(),
      StatusIs(absl::StatusCode::kCancelled));
}

TEST(LinearProbeTest, StopRequestInTheLastTraining_IsCancelled) {
  const Problem problem = RandomProblem(20, 2, 1.0, 8);
  StopToken stop;
  LinearProbeOptions options;
  options.num_epochs = 2;
  options.on_progress = [&stop](int64_t epochs) {
    if (epochs == 3) stop.Request(kStopUser);
  };
  EXPECT_THAT(
      TrainLinearProbe(problem.train, problem.train_labels, problem.test, problem.test_labels, options, stop).status(),
      StatusIs(absl::StatusCode::kCancelled));
}

TEST(LinearProbeTest, NumbersOfClassesWithGaps_CostAndChangeNothing) {
  Problem problem = RandomProblem(60, 3, 2.0, 5);
  LinearProbeOptions options;
  options.num_epochs = 3;
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult dense, Train(problem, options));
  const at::Tensor numbers = at::tensor({int64_t{0}, int64_t{5}, int64_t{40'000'000'000}});
  problem.train_labels = numbers.index_select(0, problem.train_labels);
  problem.test_labels = numbers.index_select(0, problem.test_labels);
  ASSERT_OK_AND_ASSIGN(const LinearProbeResult sparse, Train(problem, options));
  EXPECT_EQ(sparse.top1, dense.top1);
  EXPECT_EQ(sparse.best, dense.best);
}

}  // namespace
}  // namespace ssl
