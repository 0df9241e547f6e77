// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/reload_hook.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ReloadHookTest : public ::testing::Test {
 protected:
  ReloadHookTest() {
    EXPECT_OK(RegisterData(&registries_));
    EXPECT_OK(RegisterHooks(&registries_));
  }

  absl::StatusOr<ConfigNode> Resolve(const std::string& yaml) {
    SSL_ASSIGN_OR_RETURN(const ConfigNode config, ParseYaml(yaml, "test.yaml", nullptr));
    return ResolveConfig(config, registries_);
  }

  std::string Error(const std::string& yaml) { return std::string(Resolve(yaml).status().message()); }

  std::unique_ptr<Hook> Make(const ConfigNode& config) {
    const ConfigNode params = ConfigNode::Map();
    absl::StatusOr<std::unique_ptr<Hook>> hook =
        registries_.hooks.Make("reload", params, {config, registries_, *communicator_});
    EXPECT_OK(hook);
    return *std::move(hook);
  }

  Registries registries_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(ReloadHookTest, AnEntry_IsTheSamplersSettings) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode config, Resolve("hooks: [{type: reload, kwargs: {group: 2, mini_epoch: 4}}]"));
  EXPECT_EQ(config.FindPath("DATA.TRAIN.MINI_EPOCHS")->text(), "4");
  EXPECT_EQ(config.FindPath("DATA.TRAIN.MINI_EPOCH_GROUPS")->text(), "2");
  EXPECT_EQ(config.FindPath("DATA.TEST.MINI_EPOCHS")->text(), "1");
  EXPECT_EQ(Make(config)->Plan()[0].what, "finishes one of 4 parts of the data");
}

TEST_F(ReloadHookTest, PartsOfTheRunsOwn_AreToldOf) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode config,
                       Resolve("DATA: {TRAIN: {MINI_EPOCHS: 3}}\nhooks: [{type: reload, kwargs: {group: 2}}]"));
  EXPECT_EQ(config.FindPath("DATA.TRAIN.MINI_EPOCH_GROUPS")->text(), "2");
  EXPECT_EQ(Make(config)->Plan()[0].what, "finishes one of 3 parts of the data");
}

TEST_F(ReloadHookTest, WrongAndContradictoryValues_AreNamedInTheUsersWords) {
  EXPECT_EQ(Error("hooks:\n  - {type: reload, kwargs: {mini_epoch: 0}}"),
            "test.yaml:2: config.hooks.0.kwargs.mini_epoch is '0', expected an integer of at least 1");
  EXPECT_THAT(Error("DATA: {TRAIN: {MINI_EPOCH_GROUPS: 3}}\nhooks: [{type: reload, kwargs: {group: 2}}]"),
              AllOf(HasSubstr("test.yaml:2: config.hooks.0.kwargs.group means config.DATA.TRAIN.MINI_EPOCH_GROUPS: 2"),
                    HasSubstr("test.yaml:1 sets that to '3'")));
}

TEST_F(ReloadHookTest, EachEpoch_SaysWhichPartItVisits) {
  FakeStep step;
  ReloadHook hook(/*mini_epochs=*/3);
  const auto told = [&](int64_t epoch, bool training) {
    step.state.train_phase_index = epoch;
    step.state.training = training;
    const CapturedLog log;
    EXPECT_OK(hook.OnPhaseStart(step.context));
    return log.Text();
  };
  EXPECT_THAT(told(0, true), HasSubstr("reload: epoch 1 visits part 1 of 3 of the data set, in pass 1"));
  EXPECT_THAT(told(4, true), HasSubstr("reload: epoch 5 visits part 2 of 3 of the data set, in pass 2"));
  EXPECT_THAT(told(4, false), Not(HasSubstr("reload")));
}

}  // namespace
}  // namespace ssl
