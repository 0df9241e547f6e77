// SPDX-License-Identifier: Apache-2.0
//
// Order and registration; the events and errors of whole runs are tested in session_test.cc.
#include "ssl/core/hook_list.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

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

}  // namespace
}  // namespace ssl
