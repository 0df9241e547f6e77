// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/configured_hooks.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ConfiguredHooksTest : public ::testing::Test {
 protected:
  ConfiguredHooksTest() { EXPECT_OK(RegisterHooks(&registries_)); }

  // The defaults of the registered options below `yaml`.
  BuildContext Context(const std::string& yaml, const std::string& run_directory = "") {
    std::vector<std::string> warnings;
    absl::StatusOr<ConfigNode> node = ParseYaml(yaml, "test.yaml", &warnings);
    EXPECT_OK(node);
    config_ = registries_.options.Defaults();
    if (node.ok()) MergeInto(&config_, *node);
    return {config_, registries_, *communicator_, /*seed=*/0, run_directory};
  }

  std::vector<std::string> NamesFor(const std::string& yaml) {
    const auto hooks = MakeConfiguredHooks(Context(yaml));
    EXPECT_OK(hooks);
    std::vector<std::string> names;
    if (!hooks.ok()) return names;
    for (const std::unique_ptr<Hook>& hook : *hooks) names.emplace_back(hook->name());
    return names;
  }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(ConfiguredHooksTest, Registered_AreTheseAndNoOthers) {
  EXPECT_THAT(registries_.hooks.Names(), ElementsAre("check_nan", "checkpoint", "freeze_parameters", "train_logger"));
  EXPECT_THAT(registries_.metric_sinks.Names(), ElementsAre("jsonl", "tensorboard"));
  EXPECT_THAT(registries_.options.Paths(), ElementsAre("MODEL", "HOOKS"));
  EXPECT_TRUE(registries_.configured_hooks != nullptr);
  EXPECT_TRUE(registries_.configured_sinks != nullptr);
}

TEST_F(ConfiguredHooksTest, RegisteringTwice_IsTheSameAsOnce) { EXPECT_OK(RegisterHooks(&registries_)); }

TEST_F(ConfiguredHooksTest, Defaults_CheckSaveAndLog) {
  EXPECT_THAT(NamesFor("{}"), ElementsAre("check_nan", "checkpoint", "train_logger"));
}

TEST_F(ConfiguredHooksTest, CheckNan_CanBeSwitchedOff) {
  EXPECT_THAT(NamesFor("HOOKS: {CHECK_NAN: False}"), ElementsAre("checkpoint", "train_logger"));
}

TEST_F(ConfiguredHooksTest, FrozenParameters_AddTheirHook) {
  EXPECT_THAT(NamesFor("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: [[a.weight, 3]]}"),
              ElementsAre("check_nan", "freeze_parameters", "checkpoint", "train_logger"));
  EXPECT_THAT(NamesFor("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: []}"), SizeIs(3));
  EXPECT_THAT(NamesFor("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: null}"), SizeIs(3));
}

TEST_F(ConfiguredHooksTest, KeysOfOtherComponents_AreNotTakenForTheHooks) {
  EXPECT_THAT(NamesFor("LOG_FREQUENCY: 5\nSEED_VALUE: 1\nCHECKPOINT: {DIR: x, CHECKPOINT_FREQUENCY: 2}"), SizeIs(3));
}

TEST_F(ConfiguredHooksTest, WrongValues_AreNamedWithTheirPlace) {
  EXPECT_THAT(
      MakeConfiguredHooks(Context("A: 1\nLOG_FREQUENCY: 0")),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("test.yaml:2"), HasSubstr("LOG_FREQUENCY"))));
  EXPECT_THAT(MakeConfiguredHooks(Context("HOOKS:\n  CHECK_NAN: perhaps")),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("test.yaml:2"), HasSubstr("perhaps"))));
  EXPECT_THAT(MakeConfiguredHooks(Context("CHECKPOINT: {CHECKPOINT_ITER_FREQUENCY: often}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("CHECKPOINT_ITER_FREQUENCY")));
  EXPECT_THAT(MakeConfiguredHooks(Context("MODEL: {TEMP_FROZEN_PARAMS_ITER_MAP: [a]}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected [name of a parameter")));
}

TEST_F(ConfiguredHooksTest, UnknownOptionOfAHook_IsAnErrorWithTheNearestName) {
  const BuildContext context = Context("{}");
  ConfigNode params = ConfigNode::Map();
  params.Set("LOG_FREQENCY", ConfigNode::FromInt(3));

  EXPECT_THAT(registries_.hooks.Make("train_logger", params, context),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("LOG_FREQUENCY")));
}

TEST_F(ConfiguredHooksTest, Sinks_NeedARunDirectory) {
  EXPECT_THAT(*MakeConfiguredSinks(Context("HOOKS: {TENSORBOARD_SETUP: {USE_TENSORBOARD: true}}")), IsEmpty());
  EXPECT_THAT(registries_.metric_sinks.Make("jsonl", ConfigNode::Map(), Context("{}")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("metrics.jsonl")));
}

TEST_F(ConfiguredHooksTest, Sinks_WriteIntoTheRunDirectory) {
  const std::string directory = MakeTempDir("run");
  ASSERT_OK_AND_ASSIGN(const auto sinks,
                       MakeConfiguredSinks(Context("HOOKS: {TENSORBOARD_SETUP: {USE_TENSORBOARD: true}}", directory)));

  ASSERT_THAT(sinks, SizeIs(2));
  for (const auto& sink : sinks) ASSERT_OK(sink->Write({1, 0, {{"a", 1.0}}}));

  EXPECT_TRUE(PosixFileSystem().Exists(directory + "/metrics.jsonl"));
  EXPECT_THAT(*PosixFileSystem().List(directory + "/tb_logs"), SizeIs(1));
}

TEST_F(ConfiguredHooksTest, Tensorboard_IsOffByDefault) {
  EXPECT_THAT(*MakeConfiguredSinks(Context("{}", MakeTempDir("run"))), SizeIs(1));
}

}  // namespace
}  // namespace ssl
