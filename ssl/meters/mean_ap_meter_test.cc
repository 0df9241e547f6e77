// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/mean_ap_meter.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/meters/average_precision.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// More classes than are gathered at once.
constexpr int64_t kClasses = 300;

struct Phase {
  at::Tensor scores = at::randn({20, kClasses});
  at::Tensor targets = at::randint(-1, 2, {20, kClasses}, at::kLong);
};

std::unique_ptr<Meter> MakeMeter(int64_t num_meters = 1, int64_t capacity = -1) {
  MeanApMeterOptions options;
  options.num_classes = kClasses;
  options.num_meters = num_meters;
  options.max_cpu_capacity = capacity;
  absl::StatusOr<std::unique_ptr<Meter>> meter = MeanApMeter::Make(options);
  EXPECT_OK(meter);
  return *std::move(meter);
}

absl::Status UpdateWithRows(Meter& meter, const Phase& phase, int64_t begin, int64_t count) {
  return meter.Update({phase.scores.narrow(0, begin, count)}, phase.targets.narrow(0, begin, count));
}

std::vector<MeterValue> ValuesOf(Meter& meter) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  absl::StatusOr<std::vector<MeterValue>> values = meter.Values(*communicator);
  EXPECT_OK(values);
  return values.ok() ? *std::move(values) : std::vector<MeterValue>();
}

// values: of one output. They are those of the whole phase.
void ExpectMeasured(const std::vector<MeterValue>& values, const at::Tensor& scores, const at::Tensor& targets) {
  const at::Tensor precision = AveragePrecision(scores, targets);
  ASSERT_THAT(values, SizeIs(1 + kClasses));
  double sum = 0.0;
  int64_t count = 0;
  for (int64_t c = 0; c < kClasses; ++c) {
    const double expected = precision[c].item<double>();
    EXPECT_EQ(values[c + 1].metric, "AP");
    EXPECT_DOUBLE_EQ(values[c + 1].value, expected);
    if (expected < 0.0) continue;
    sum += expected;
    ++count;
  }
  EXPECT_EQ(values[0].metric, "mAP");
  EXPECT_NEAR(values[0].value, 100.0 * sum / static_cast<double>(count), 1e-4);
}

TEST(MeanApMeter, Batches_AreOnePhase) {
  const Phase phase;
  const auto meter = MakeMeter();

  ASSERT_OK(UpdateWithRows(*meter, phase, 0, 12));
  ASSERT_OK(UpdateWithRows(*meter, phase, 12, 8));

  ExpectMeasured(ValuesOf(*meter), phase.scores, phase.targets);
}

TEST(MeanApMeter, Outputs_AreMeasuredByThemselves) {
  const Phase phase;
  const auto meter = MakeMeter(/*num_meters=*/2);

  ASSERT_OK(meter->Update({phase.scores, -phase.scores}, phase.targets));

  const std::vector<MeterValue> values = ValuesOf(*meter);
  ASSERT_THAT(values, SizeIs(2 * (1 + kClasses)));
  const auto middle = values.begin() + 1 + kClasses;
  EXPECT_EQ(values.front().output, "0");
  EXPECT_EQ(middle->output, "1");
  ExpectMeasured({values.begin(), middle}, phase.scores, phase.targets);
  ExpectMeasured({middle, values.end()}, -phase.scores, phase.targets);
}

TEST(MeanApMeter, TargetsThatTheLoaderReuses_AreCopied) {
  const Phase phase;
  const at::Tensor targets = phase.targets.clone();
  const auto meter = MakeMeter();

  ASSERT_OK(meter->Update({phase.scores}, targets));
  targets.zero_();

  ExpectMeasured(ValuesOf(*meter), phase.scores, phase.targets);
}

TEST(MeanApMeter, NoPositives_HaveNoMean) {
  const auto meter = MakeMeter();
  EXPECT_THAT(ValuesOf(*meter), IsEmpty());

  ASSERT_OK(meter->Update({at::zeros({2, kClasses})}, at::zeros({2, kClasses}, at::kLong)));

  EXPECT_TRUE(std::isnan(ValuesOf(*meter)[0].value));
}

TEST(MeanApMeter, Reset_ForgetsEverything) {
  const Phase phase;
  const Phase other;
  const auto meter = MakeMeter();
  ASSERT_OK(UpdateWithRows(*meter, other, 0, 20));
  meter->Reset();

  ASSERT_OK(UpdateWithRows(*meter, phase, 0, 20));

  ExpectMeasured(ValuesOf(*meter), phase.scores, phase.targets);
}

TEST(MeanApMeter, RestoredState_GoesOn) {
  const Phase phase;
  const auto first = MakeMeter();
  ASSERT_OK(UpdateWithRows(*first, phase, 0, 7));
  ASSERT_OK(UpdateWithRows(*first, phase, 7, 4));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*first));
  const auto second = MakeMeter();
  ASSERT_OK(UpdateWithRows(*second, phase, 3, 5));

  ASSERT_OK(RestoreState(*second, state, "test"));
  ASSERT_OK(UpdateWithRows(*second, phase, 11, 9));

  ExpectMeasured(ValuesOf(*second), phase.scores, phase.targets);
}

TEST(MeanApMeter, StateOfANewMeter_CanBeRestored) {
  const auto first = MakeMeter();
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*first));
  const auto second = MakeMeter();

  ASSERT_OK(RestoreState(*second, state, "test"));

  EXPECT_THAT(ValuesOf(*second), IsEmpty());
}

TEST(MeanApMeter, Ranks_MayHaveDifferentNumbersOfSamples) {
  const Phase phase;
  ThreadWorld world(3, absl::Seconds(60));
  std::vector<MeterValue> values_of[3];

  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    const auto meter = MakeMeter();
    if (communicator.rank() == 0) SSL_RETURN_IF_ERROR(UpdateWithRows(*meter, phase, 0, 13));
    if (communicator.rank() == 1) SSL_RETURN_IF_ERROR(UpdateWithRows(*meter, phase, 13, 7));
    SSL_ASSIGN_OR_RETURN(values_of[communicator.rank()], meter->Values(communicator));
    return absl::OkStatus();
  }));

  for (const std::vector<MeterValue>& values : values_of) ExpectMeasured(values, phase.scores, phase.targets);
}

TEST(MeanApMeter, BatchesThatDoNotFit_AreNamed) {
  const Phase phase;
  const auto meter = MakeMeter();
  EXPECT_THAT(meter->Update({phase.scores}, phase.targets.narrow(1, 0, 4)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("an output has shape [20, 300] and the targets [20, 4], expected [B, 300]")));
  EXPECT_THAT(meter->Update({phase.scores.narrow(1, 0, 4)}, phase.targets.narrow(1, 0, 4)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected [B, 300] (num_classes)")));
}

TEST(MeanApMeter, Capacity_IsALimit) {
  const Phase phase;
  const auto meter = MakeMeter(/*num_meters=*/1, /*capacity=*/15);
  ASSERT_OK(UpdateWithRows(*meter, phase, 0, 15));

  EXPECT_THAT(UpdateWithRows(*meter, phase, 15, 1),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_cpu_capacity is 15")));
}

}  // namespace
}  // namespace ssl
