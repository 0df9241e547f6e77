// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/top_k_meter.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kClasses = 3;

at::Tensor Scores(const std::vector<double>& values) { return at::tensor(values, at::kFloat).view({-1, kClasses}); }
at::Tensor Numbers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }
at::Tensor Labels(const std::vector<int64_t>& values) { return Numbers(values).view({-1, kClasses}); }

std::unique_ptr<Meter> MakeMeter(absl::string_view name, std::vector<int64_t> topk_values,
                                 std::vector<std::string> meter_names = {}) {
  TopKMeterOptions options;
  options.topk_values = std::move(topk_values);
  if (!meter_names.empty()) options.num_meters = static_cast<int64_t>(meter_names.size());
  options.meter_names = std::move(meter_names);
  for (const TopKRule& rule : TopKRules()) {
    if (rule.name != name) continue;
    absl::StatusOr<std::unique_ptr<Meter>> meter = TopKMeter::Make(rule, options);
    EXPECT_OK(meter);
    return *std::move(meter);
  }
  return nullptr;
}

// The fractions that the meter tells.
std::vector<double> Fractions(Meter& meter) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const auto values = meter.Values(*communicator);
  EXPECT_OK(values);
  std::vector<double> fractions;
  if (!values.ok()) return fractions;
  for (const MeterValue& value : *values) fractions.push_back(value.value / 100.0);
  return fractions;
}

auto Are(double first, double second) { return ElementsAre(DoubleNear(first, 1e-6), DoubleNear(second, 1e-6)); }

// The batches of VISSL's own tests.
const at::Tensor kAccuracyScores = Scores({3, 2, 1, 3, 1, 2, 1, 3, 2});
const at::Tensor kScores = Scores({.2, .4, .4, .2, .65, .15, .33, .33, .34});
const at::Tensor kLabels = Labels({0, 1, 0, 1, 0, 0, 1, 1, 1});
const at::Tensor kMoreScores = Scores({.05, .4, .05, .15, .65, .2, .4, .2, .4});

TEST(AccuracyMeter, ClassNumbersAndOneHotLabels_CountSamplesWithAHit) {
  for (const at::Tensor& targets :
       {Numbers({0, 1, 2}), Numbers({0, 1, 2}).view({3, 1}), Labels({1, 0, 0, 0, 1, 0, 0, 0, 1})}) {
    const auto meter = MakeMeter("accuracy_list_meter", {1, 2});

    ASSERT_OK(meter->Update({kAccuracyScores}, targets));

    EXPECT_THAT(Fractions(*meter), Are(1.0 / 3, 2.0 / 3));
  }
}

TEST(AccuracyMeter, SoftLabels_AreTheClassesOfTheLargestWeights) {
  const at::Tensor smoothed = at::tensor({0.8, 0.1, 0.1, 0.2, 0.5, 0.3, 0.1, 0.4, 0.5}, at::kFloat).view({3, 3});
  const at::Tensor several = at::tensor({1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0}, at::kFloat).view({3, 3});
  const auto meter = MakeMeter("accuracy_list_meter", {1, 2});
  ASSERT_OK(meter->Update({kAccuracyScores}, smoothed));
  EXPECT_THAT(Fractions(*meter), Are(1.0 / 3, 2.0 / 3));
  const auto recall = MakeMeter("recall_at_k_list_meter", {1, 2});
  ASSERT_OK(recall->Update({kAccuracyScores}, several));
  EXPECT_THAT(Fractions(*recall), Are(1.0 / 3, 2.0 / 3));
}

TEST(AccuracyMeter, FurtherBatches_AddUp) {
  const auto meter = MakeMeter("accuracy_list_meter", {1, 2});

  ASSERT_OK(meter->Update({kAccuracyScores}, Numbers({0, 1, 2})));
  ASSERT_OK(meter->Update({Scores({3, 2, 1, 1, 3, 2, 1, 3, 2})}, Numbers({0, 1, 2})));

  EXPECT_THAT(Fractions(*meter), Are(3.0 / 6, 5.0 / 6));
}

TEST(AccuracyMeter, SeveralLabels_CountOnceForEachSample) {
  const auto meter = MakeMeter("accuracy_list_meter", {1, 2});

  ASSERT_OK(meter->Update({Scores({3, 2, 1, 3, 1, 2, 1, 3, 2, 1, 2, 3, 2, 1, 3, 2, 3, 1, 1, 3, 2})},
                          Labels({1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1})));

  EXPECT_THAT(Fractions(*meter), Are(4.0 / 7, 6.0 / 7));
}

TEST(AccuracyMeter, SoftLabels_AreThoseAboveZero) {
  const auto meter = MakeMeter("accuracy_list_meter", {1, 2});

  ASSERT_OK(meter->Update({kAccuracyScores}, Scores({.5, .5, 0, 0, .25, .75, 0, 0, 1})));

  EXPECT_THAT(Fractions(*meter), Are(1.0 / 3, 1.0));
}

TEST(AccuracyMeter, MaskedScores_AreTheLast) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto meter = MakeMeter("accuracy_list_meter", {1, 2});

  ASSERT_OK(meter->Update({Scores({-kInfinity, 0, -1, -kInfinity, -2, -1})}, Numbers({1, 0})));

  EXPECT_THAT(Fractions(*meter), Are(0.5, 0.5));
}

TEST(PrecisionMeter, Batches_MatchVissl) {
  const auto meter = MakeMeter("precision_at_k_list_meter", {1, 2});
  ASSERT_OK(meter->Update({kScores}, kLabels));
  EXPECT_THAT(Fractions(*meter), Are(2.0 / 3, 4.0 / 6));

  ASSERT_OK(meter->Update({kMoreScores}, Labels({0, 1, 0, 0, 1, 0, 0, 1, 0})));

  EXPECT_THAT(Fractions(*meter), Are(4.0 / 6, 6.0 / 12));
}

TEST(RecallMeter, Batches_MatchVissl) {
  const auto meter = MakeMeter("recall_at_k_list_meter", {1, 2});
  ASSERT_OK(meter->Update({kScores}, kLabels));
  EXPECT_THAT(Fractions(*meter), Are(2.0 / 5, 4.0 / 5));

  ASSERT_OK(meter->Update({kMoreScores}, Labels({0, 1, 0, 0, 1, 0, 0, 1, 0})));

  EXPECT_THAT(Fractions(*meter), Are(4.0 / 8, 6.0 / 8));
}

TEST(RecallMeter, SamplesWithoutLabels_AreARecallOfZero) {
  const auto meter = MakeMeter("recall_at_k_list_meter", {1, 2});

  ASSERT_OK(meter->Update({kScores}, Labels({0, 0, 0, 0, 0, 0, -1, -1, -1})));

  EXPECT_THAT(Fractions(*meter), Are(0.0, 0.0));
}

// Counts by definition, for random scores and labels.
TEST(TopKMeters, AgreeWithCountingByHand) {
  constexpr int64_t kSamples = 40;
  const at::Tensor scores = at::randn({kSamples, 7});
  const at::Tensor labels = at::randint(-1, 2, {kSamples, 7}, at::kLong);
  for (const int64_t k : {1, 3, 7}) {
    double samples_hit = 0.0;
    double hits = 0.0;
    double positives = 0.0;
    for (int64_t b = 0; b < kSamples; ++b) {
      double hits_of_sample = 0.0;
      for (int64_t c = 0; c < 7; ++c) {
        const bool positive = labels[b][c].item<int64_t>() == 1;
        const int64_t better = scores[b].gt(scores[b][c]).sum().item<int64_t>();
        positives += positive ? 1.0 : 0.0;
        hits_of_sample += positive && better < k ? 1.0 : 0.0;
      }
      hits += hits_of_sample;
      samples_hit += hits_of_sample > 0.0 ? 1.0 : 0.0;
    }
    const std::vector<std::pair<std::string, double>> expected = {
        {"accuracy_list_meter", samples_hit / kSamples},
        {"precision_at_k_list_meter", hits / static_cast<double>(k * kSamples)},
        {"recall_at_k_list_meter", hits / positives}};
    for (const auto& [name, value] : expected) {
      const auto meter = MakeMeter(name, {k});
      ASSERT_OK(meter->Update({scores}, labels));
      EXPECT_THAT(Fractions(*meter), ElementsAre(DoubleNear(value, 1e-6))) << name << " " << k;
    }
  }
}

TEST(TopKMeter, Values_AreNamedByKAndOutput) {
  const auto meter = MakeMeter("accuracy_list_meter", {2, 1}, {"res4", "res5", "res5", "res5"});
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  ASSERT_OK(meter->Update({kAccuracyScores, -kAccuracyScores, kAccuracyScores, kAccuracyScores}, Numbers({0, 1, 2})));

  ASSERT_OK_AND_ASSIGN(const auto values, meter->Values(*communicator));

  std::vector<std::string> lines;
  for (const MeterValue& value : values) {
    lines.push_back(absl::StrCat(value.metric, " ", value.output, " ", static_cast<int64_t>(value.value)));
  }
  EXPECT_THAT(lines, ElementsAre("top_2 res4 66", "top_2 res5 66", "top_2 res5_1 66", "top_2 res5_2 66",
                                 "top_1 res4 33", "top_1 res5 33", "top_1 res5_1 33", "top_1 res5_2 33"));
}

TEST(TopKMeter, OutputsWithAGraph_AreMeasuredWithoutIt) {
  const auto meter = MakeMeter("accuracy_list_meter", {1});
  const at::Tensor scores = kAccuracyScores.clone().set_requires_grad(true);

  ASSERT_OK(meter->Update({scores * 2.0}, Numbers({0, 1, 2})));

  EXPECT_THAT(Fractions(*meter), ElementsAre(DoubleNear(1.0 / 3, 1e-6)));
}

TEST(TopKMeter, Reset_ForgetsEverything) {
  const auto meter = MakeMeter("accuracy_list_meter", {1, 2});
  EXPECT_THAT(Fractions(*meter), Are(0.0, 0.0));
  ASSERT_OK(meter->Update({kScores}, kLabels));
  meter->Reset();

  ASSERT_OK(meter->Update({kAccuracyScores}, Numbers({0, 1, 2})));

  EXPECT_THAT(Fractions(*meter), Are(1.0 / 3, 2.0 / 3));
}

TEST(TopKMeter, RestoredState_GoesOn) {
  const auto first = MakeMeter("recall_at_k_list_meter", {1, 2});
  ASSERT_OK(first->Update({kScores}, kLabels));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*first));
  const auto second = MakeMeter("recall_at_k_list_meter", {1, 2});

  ASSERT_OK(RestoreState(*second, state, "test"));
  ASSERT_OK(second->Update({kMoreScores}, Labels({0, 1, 0, 0, 1, 0, 0, 1, 0})));

  EXPECT_THAT(Fractions(*second), Are(4.0 / 8, 6.0 / 8));
}

TEST(TopKMeter, Ranks_AddTheirCountsAndMayDifferInSize) {
  ThreadWorld world(2, absl::Seconds(60));
  std::vector<double> values_of[2];

  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    const auto meter = MakeMeter("precision_at_k_list_meter", {1, 2});
    const bool first = communicator.rank() == 0;
    SSL_RETURN_IF_ERROR(first ? meter->Update({kScores}, kLabels)
                              : meter->Update({kMoreScores.narrow(0, 0, 1)}, Labels({0, 1, 0})));
    SSL_ASSIGN_OR_RETURN(const auto values, meter->Values(communicator));
    for (const MeterValue& value : values) values_of[communicator.rank()].push_back(value.value / 100.0);
    return absl::OkStatus();
  }));

  EXPECT_THAT(values_of[0], Are(3.0 / 4, 5.0 / 8));
  EXPECT_EQ(values_of[0], values_of[1]);
}

TEST(TopKMeter, BatchesThatDoNotFit_AreNamed) {
  const auto meter = MakeMeter("accuracy_list_meter", {1, 2});
  const auto refused = [](const char* text) { return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)); };
  EXPECT_THAT(meter->Update({kScores, kScores}, kLabels),
              refused("the model has 2 outputs, config.METERS.accuracy_list_meter.num_meters is 1"));
  EXPECT_THAT(meter->Update({kScores}, at::Tensor()), refused("config.DATA.TEST.LABEL_SOURCES"));
  EXPECT_THAT(meter->Update({kScores}, Numbers({0})), refused("an output has shape [3, 3] and the targets [1]"));
  EXPECT_THAT(meter->Update({kScores}, kLabels.narrow(1, 0, 2)),
              refused("output 0 has shape [3, 3] and the labels [3, 2], expected the same"));
}

TEST(TopKMeter, MoreBestScoresThanClasses_NamesBoth) {
  const auto meter = MakeMeter("accuracy_list_meter", {1, 5});

  EXPECT_THAT(
      meter->Update({kScores}, Numbers({0, 1, 2})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("config.METERS.accuracy_list_meter.topk_values asks for the best 5 scores, but output 0 "
                         "of the model has 3 classes")));
}

TEST(TopKMeter, OptionsThatContradict_AreNamed) {
  TopKMeterOptions options;
  options.meter_names = {"res4", "res5"};
  EXPECT_THAT(
      TopKMeter::Make(TopKRules()[0], options),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("config.METERS.accuracy_list_meter.meter_names has 2 names (res4, res5), expected 1")));
  options.meter_names = {};
  options.topk_values = {};
  EXPECT_THAT(TopKMeter::Make(TopKRules()[0], options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("topk_values is empty")));
}

}  // namespace
}  // namespace ssl
