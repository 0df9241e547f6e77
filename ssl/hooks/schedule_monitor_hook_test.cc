// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/schedule_monitor_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

ParameterGroup Group(int parameters, double learning_rate) {
  ParameterGroup group;
  group.parameters = std::vector<at::Tensor>(parameters, at::full({1}, 1.0));
  group.learning_rate = learning_rate;
  return group;
}

std::map<std::string, double> Recorded(std::vector<ParameterGroup> groups) {
  FakeStep step;
  EXPECT_OK(step.optimizer.Initialize(std::move(groups)));
  ScheduleMonitorHook hook;
  EXPECT_OK(hook.OnUpdate(step.context));
  return step.metrics.Report(1, 0, step.context.communicator)->values;
}

TEST(ScheduleMonitorHook, LargestGroup_StandsForAll) {
  EXPECT_THAT(Recorded({Group(1, 0.5), Group(3, 0.25), Group(2, 0.125)}), ElementsAre(Pair("Training/lr", 0.25)));
}

TEST(ScheduleMonitorHook, GroupsOfOneParameter_CountByFrequency) {
  EXPECT_THAT(Recorded({Group(1, 0.5), Group(1, 0.25), Group(1, 0.25)}), ElementsAre(Pair("Training/lr", 0.25)));
}

TEST(ScheduleMonitorHook, WeightDecay_IsRecordedWhereItIsScheduled) {
  ParameterGroup group = Group(2, 0.5);
  group.weight_decay = 0.04;
  EXPECT_THAT(Recorded({group}), ElementsAre(Pair("Training/lr", 0.5)));
  group.weight_decay_schedule = "weight_decay";
  EXPECT_THAT(Recorded({group}), ElementsAre(Pair("Training/lr", 0.5), Pair("Training/weight_decay", 0.04)));
}

TEST(ScheduleMonitorHook, Momentum_IsRecordedWhereItIsScheduled) {
  ParameterGroup group = Group(2, 0.5);
  group.momentum = 0.75;
  EXPECT_THAT(Recorded({group}), ElementsAre(Pair("Training/lr", 0.5)));
  group.momentum_schedule = "momentum";
  EXPECT_THAT(Recorded({group}), ElementsAre(Pair("Training/lr", 0.5), Pair("Training/momentum", 0.75)));
}

TEST(ScheduleMonitorHook, RunsThatDoNotTrain_AreLeftAlone) {
  FakeStep step;
  step.context.optimizer = nullptr;
  ScheduleMonitorHook hook;
  EXPECT_OK(hook.OnUpdate(step.context));
}

}  // namespace
}  // namespace ssl
