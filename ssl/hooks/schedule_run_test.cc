// SPDX-License-Identifier: Apache-2.0
//
// Schedules in whole runs: what each update is made with, and that a run that goes on has the same.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/metrics.h"
#include "ssl/core/session.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLinear[] =
    "hooks: [{type: schedule_monitor}]\n"
    "OPTIMIZER: {param_schedulers: {momentum: {name: linear, start_value: 0.5, end_value: 0.9}}}\n";
// A value for each epoch, 0 in the first.
constexpr char kByEpoch[] =
    "hooks: [{type: schedule_monitor}]\n"
    "OPTIMIZER: {param_schedulers: {momentum: {name: step, values: [0, 0.8], update_interval: epoch}}}\n";

// What was recorded under `name`, from the oldest on.
std::vector<double> Recorded(Session& session, const std::string& name) {
  std::vector<double> values;
  const MetricHistory* history = session.metrics().History(name);
  for (int64_t age = history == nullptr ? 0 : history->size(); age > 0; --age) {
    values.push_back(history->FromNewest(age - 1).value);
  }
  return values;
}

// Runs up to update `end` and stops there; the learning rates of its updates.
std::vector<double> StepTo(int64_t end, const std::string& overrides) {
  const absl::StatusOr<std::unique_ptr<Session>> session = OpenTinyRun(overrides);
  EXPECT_OK(session);
  if (!session.ok()) return {};
  EXPECT_OK((*session)->Start());
  while ((*session)->state().iteration < end) {
    const absl::StatusOr<bool> stepped = (*session)->Step();
    EXPECT_OK(stepped);
    if (!stepped.ok() || !*stepped) break;
  }
  const std::vector<double> rates = Recorded(**session, "Training/lr");
  EXPECT_OK((*session)->Finish());
  return rates;
}

TEST(ScheduleRunTest, Momentum_IsThatOfItsScheduleAtEachUpdate) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult linear, TrainTinyRun(kLinear));
  std::vector<double> expected;
  for (int update = 0; update < 10; ++update) {
    const double where = update / 10.0;
    expected.push_back(0.9 * where + 0.5 * (1.0 - where));
  }
  EXPECT_EQ(linear.Values("Training/momentum"), expected);
  ASSERT_OK_AND_ASSIGN(const TinyRunResult by_epoch, TrainTinyRun(kByEpoch));
  EXPECT_EQ(by_epoch.Values("Training/momentum"), (std::vector<double>{0, 0, 0, 0, 0, 0.8, 0.8, 0.8, 0.8, 0.8}));
  EXPECT_NE(by_epoch.state, linear.state);
  ASSERT_OK_AND_ASSIGN(const TinyRunResult constant,
                       TrainTinyRun("OPTIMIZER: {param_schedulers: {momentum: {name: constant, value: 0.9}}}"));
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  EXPECT_EQ(constant.state, plain.state) << "the momentum of plain is 0.9";
}

TEST(ScheduleRunTest, MomentumForARunThatHadNone_IsRefusedWithTheKeyThatAsksForIt) {
  const std::string run = absl::StrCat("CHECKPOINT: {DIR: ", MakeTempDir("no_momentum"),
                                       ", ALLOW_CHANGES: [OPTIMIZER.param_schedulers.momentum]}\n");
  StepTo(3, run + "OPTIMIZER: {momentum: 0}");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       OpenTinyRun(run + "OPTIMIZER: {momentum: 0, param_schedulers: {momentum: {name: linear, "
                                         "start_value: 0.5, end_value: 0.9}}}"));
  EXPECT_THAT(session->Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         AllOf(HasSubstr("optimizer/momentum/"),
                                               HasSubstr("ALLOW_CHANGES lets OPTIMIZER.param_schedulers.momentum"))));
}

TEST(ScheduleRunTest, Momentum_GoesOnWhereAStoppedRunGoesOn) {
  for (const auto& [schedule, stop] : {std::pair<std::string, int>{kLinear, 3}, {kByEpoch, 7}}) {
    ASSERT_OK_AND_ASSIGN(const TinyRunResult whole, TrainTinyRun(schedule));
    const std::string directory = MakeTempDir("scheduled");
    const std::string overrides = absl::StrCat(schedule, "CHECKPOINT: {DIR: ", directory, "}\n");
    StepTo(stop, overrides);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> rest, OpenTinyRun(overrides));
    ASSERT_OK(rest->Train());
    for (const auto& [file, bytes] : whole.state) {
      EXPECT_EQ(PosixFileSystem().Read(absl::StrCat(directory, "/checkpoints/step_10/", file)).value_or(""), bytes)
          << file << " after a stop at " << stop;
    }
  }
}

// The case of detectron2's own tests of its trainer: the rate falls to a tenth every 3 updates; after 12 updates it is
// 1e-5, for a run that goes on as well. There, a trainer that is told another rate has that of the file; here it is
// told that they differ.
TEST(ScheduleRunTest, Case5_RateAfterTwelveUpdates) {
  const std::string directory = MakeTempDir("case5");
  const auto with_rate = [&directory](const std::string& base) {
    return absl::StrCat(
        "hooks: [{type: schedule_monitor}]\nCHECKPOINT: {DIR: ", directory,
        "}\nOPTIMIZER: {num_epochs: 3, param_schedulers: {lr: {name: step_with_fixed_gamma, gamma: 0.1, "
        "num_decays: 4, update_interval: step, base_value: ",
        base, "}}}");
  };
  const std::vector<double> rates = StepTo(12, with_rate("0.1"));
  ASSERT_EQ(rates.size(), 12);
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(rates[i], std::pow(0.1, 1 + i / 3), 1e-12) << i;

  const std::vector<double> rest = StepTo(13, with_rate("0.1"));
  ASSERT_EQ(rest.size(), 1) << "it goes on after update 12";
  EXPECT_NEAR(rest[0], 1e-5, 1e-15);

  const auto other = OpenTinyRun(with_rate("999"));
  EXPECT_THAT(other.ok() ? (*other)->Start() : other.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("OPTIMIZER.param_schedulers.lr.base_value: 0.1 in the checkpoint, 999"),
                             HasSubstr("ALLOW_CHANGES"))));
}

}  // namespace
}  // namespace ssl
