// SPDX-License-Identifier: Apache-2.0
//
// Order, registration, errors and exceptions; the events of whole runs are tested in session_test.cc.
#include "ssl/core/hook_list.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/metrics.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/core/testing/no_model.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HookListTest, Order_IsByStageThenByAddition) {
  HookList hooks;
  std::vector<std::string> events;
  const auto add = [&](const char* name, HookStage stage) {
    return hooks.Add(std::make_unique<RecordingHook>(name, stage, &events));
  };
  ASSERT_OK(add("log", HookStage::kReport));
  ASSERT_OK(add("ema", HookStage::kMutate));
  ASSERT_OK(add("save", HookStage::kPersist));
  ASSERT_OK(add("clip", HookStage::kMutate));
  ASSERT_OK(add("check_nan", HookStage::kGuard));

  EXPECT_EQ(hooks.Order(), "guard: check_nan; mutate: ema, clip; report: log; persist: save");
}

TEST(HookListTest, Empty_HasEmptyOrder) { EXPECT_EQ(HookList().Order(), ""); }

TEST(HookListTest, NameTwice_IsAlreadyExists) {
  HookList hooks;
  std::vector<std::string> events;
  ASSERT_OK(hooks.Add(std::make_unique<RecordingHook>("ema", HookStage::kMutate, &events)));
  EXPECT_THAT(hooks.Add(std::make_unique<RecordingHook>("ema", HookStage::kReport, &events)),
              StatusIs(absl::StatusCode::kAlreadyExists, "hook 'ema' is added twice"));
}

// Counts its updates.
class CountingHook : public Hook {
 public:
  absl::string_view name() const override { return "counting"; }
  HookStage stage() const override { return HookStage::kObserve; }
  void VisitState(StateVisitor& visitor) override { visitor.Int("count", count); }

  int64_t count = 0;
};

TEST(HookListTest, TwoOfOneClass_HaveEachItsOwnStateUnderItsInstanceName) {
  HookList hooks;
  auto first = std::make_unique<CountingHook>();
  auto second = std::make_unique<CountingHook>();
  first->count = 3;
  second->count = 5;
  second->set_instance_name("counting_again");
  CountingHook* const last = second.get();
  ASSERT_OK(hooks.Add(std::move(first)));
  EXPECT_THAT(hooks.Add(std::make_unique<CountingHook>()), StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_OK(hooks.Add(std::move(second)));

  EXPECT_EQ(hooks.Order(), "observe: counting, counting_again");
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(hooks));
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[1].name, "counting_again/count");
  last->count = 0;
  ASSERT_OK(RestoreState(hooks, state, "test"));
  EXPECT_EQ(last->count, 5);
}

TEST(HookListTest, StateOfOtherHooks_IsNamedAndLeftAlone) {
  HookList saved;
  auto removed = std::make_unique<CountingHook>();
  removed->set_instance_name("removed");
  ASSERT_OK(saved.Add(std::move(removed)));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(saved));
  HookList now;
  auto added = std::make_unique<CountingHook>();
  added->count = 7;
  CountingHook* const hook = added.get();
  ASSERT_OK(now.Add(std::move(added)));

  const CapturedLog log;

  ASSERT_OK(RestoreState(now, state, "step_7"));

  EXPECT_EQ(hook->count, 7);
  EXPECT_THAT(log.warnings, ElementsAre(AllOf(HasSubstr("step_7: "), HasSubstr("removed"), HasSubstr("counting"))));
}

// Three hooks, of which the middle one acts at one event.
class HookEventsTest : public ::testing::Test {
 protected:
  void Add(const std::string& event, RecordingHook::Action action) {
    state_.iteration = 7;
    auto acting = std::make_unique<RecordingHook>("acting", HookStage::kMutate, &events_);
    acting->At(event, std::move(action));
    ASSERT_OK(hooks_.Add(std::make_unique<RecordingHook>("first", HookStage::kGuard, &events_)));
    ASSERT_OK(hooks_.Add(std::move(acting)));
    ASSERT_OK(hooks_.Add(std::make_unique<RecordingHook>("last", HookStage::kReport, &events_)));
  }

  std::vector<std::string> events_;
  HookList hooks_;
  NoModel model_;
  TrainState state_;
  MetricStore metrics_;
  StopToken stop_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  StepContext context_{state_, model_, nullptr, *communicator_, metrics_, stop_, nullptr};
};

TEST_F(HookEventsTest, EveryEvent_ReachesItsHandlerInTheOrderOfStages) {
  Add("none", nullptr);
  for (const HookEvent& event :
       {kOnStart, kOnPhaseStart, kOnForward, kOnLossAndMeter, kOnBackward, kOnUpdate, kOnStep, kOnPhaseEnd, kOnEnd}) {
    events_.clear();
    ASSERT_OK(hooks_.Run(event, context_));
    const std::string suffix = std::string(".") + event.name + "@7";
    EXPECT_THAT(events_, ElementsAre("first" + suffix, "acting" + suffix, "last" + suffix));
  }
  EXPECT_EQ(hooks_.failure().hook, "");
}

class ComputingHook : public RecordingHook {
 public:
  using RecordingHook::RecordingHook;
  WithinUpdate within_update() const override { return WithinUpdate::kComputes; }
};

TEST_F(HookEventsTest, Only_LeavesOutTheOtherKindsWhileItLives) {
  Add("none", nullptr);
  ASSERT_OK(hooks_.Add(std::make_unique<ComputingHook>("computing", HookStage::kReport, &events_)));
  {
    const HookList::Only computing(hooks_, WithinUpdate::kComputes);
    ASSERT_OK(hooks_.Run(kOnForward, context_));
    EXPECT_THAT(events_, ElementsAre("computing.OnForward@7"));
  }
  events_.clear();
  ASSERT_OK(hooks_.Run(kOnForward, context_));
  EXPECT_EQ(events_.size(), 4u);
}

TEST_F(HookEventsTest, Error_EndsTheEventAndNamesHookEventAndIteration) {
  Add("OnStep", [](StepContext&) { return absl::DataLossError("disk is gone"); });
  EXPECT_THAT(hooks_.Run(kOnStep, context_),
              StatusIs(absl::StatusCode::kDataLoss, "hook 'acting' (OnStep, iteration 7): disk is gone"));
  EXPECT_THAT(events_, ElementsAre("first.OnStep@7", "acting.OnStep@7"));
  EXPECT_EQ(hooks_.failure().hook, "acting");
  EXPECT_EQ(hooks_.failure().event, "OnStep");
}

TEST_F(HookEventsTest, Exceptions_BecomeErrors) {
  Add("OnUpdate", [](StepContext&) -> absl::Status { throw std::bad_alloc(); });
  EXPECT_THAT(hooks_.Run(kOnUpdate, context_),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "hook 'acting' (OnUpdate, iteration 7): exception: out of memory"));
}

TEST_F(HookEventsTest, ExceptionsThatAreNoStdException_BecomeErrors) {
  Add("OnUpdate", [](StepContext&) -> absl::Status { throw 5; });
  EXPECT_THAT(hooks_.Run(kOnUpdate, context_), StatusIs(absl::StatusCode::kInternal, HasSubstr("unknown type")));
}

TEST_F(HookEventsTest, EndAndException_ReachAllWhateverOneThrows) {
  for (const std::string event : {"OnEnd", "OnException"}) {
    hooks_ = HookList();
    events_.clear();
    Add(event, [](StepContext&) -> absl::Status { throw std::runtime_error("broken"); });
    const absl::Status status =
        event == "OnEnd" ? hooks_.RunOnEnd(context_) : hooks_.RunOnException(context_, absl::AbortedError("why"));
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal, "hook 'acting' (" + event + ", iteration 7): exception: broken"));
    EXPECT_THAT(events_, ElementsAre("first." + event + "@7", "acting." + event + "@7", "last." + event + "@7"));
  }
}

TEST_F(HookEventsTest, FirstFailure_IsKept) {
  Add("OnUpdate", [](StepContext&) { return absl::DataLossError("the cause"); });
  EXPECT_FALSE(hooks_.Run(kOnUpdate, context_).ok());
  auto second = std::make_unique<RecordingHook>("second", HookStage::kReport, &events_);
  second->At("OnEnd", [](StepContext&) { return absl::DataLossError("what follows"); });
  ASSERT_OK(hooks_.Add(std::move(second)));
  EXPECT_FALSE(hooks_.RunOnEnd(context_).ok());
  EXPECT_EQ(hooks_.failure().hook, "acting");
}

}  // namespace
}  // namespace ssl
