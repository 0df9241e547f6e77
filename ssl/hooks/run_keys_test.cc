// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/run_keys.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

struct SpeedOptions : public Options {
  int64_t speed = 1;
  void VisitFields(FieldVisitor& visitor) override { visitor.Field("SPEED", &speed, Doc("of all").AtLeast(1)); }
};

struct PaceOptions : public RunKeysOptions {
  int64_t pace = 1;
  absl::string_view section() const override { return kHookList; }
  bool enabled() const override { return false; }
  std::map<std::string, std::string> run_keys() const override { return {{"pace", "CAR.SPEED"}}; }
  void VisitFields(FieldVisitor& visitor) override { visitor.Field("pace", &pace, Doc("the car's")); }
};

absl::StatusOr<std::unique_ptr<Hook>> MakeNone(const PaceOptions&, const ConfigNode&, const BuildContext&) {
  return absl::UnimplementedError("none is made here");
}

class RunKeysTest : public ::testing::Test {
 protected:
  RunKeysTest() {
    EXPECT_OK(registries_.options.Add("CAR", [] { return std::make_unique<SpeedOptions>(); }));
    EXPECT_OK(RegisterHooks(&registries_));
    EXPECT_OK(RegisterHook(&registries_, {"pacer", "drives"}, &MakeNone));
  }

  absl::StatusOr<ConfigNode> Resolve(const std::string& yaml) {
    SSL_ASSIGN_OR_RETURN(const ConfigNode config, ParseYaml(yaml, "test.yaml", nullptr));
    return ResolveConfig(config, registries_);
  }

  std::string Speed(const std::string& yaml) {
    const absl::StatusOr<ConfigNode> config = Resolve(yaml);
    return config.ok() ? config->FindPath("CAR.SPEED")->text() : std::string(config.status().message());
  }

  Registries registries_;
};

TEST_F(RunKeysTest, AnEntry_SetsTheRunsKey) {
  EXPECT_EQ(Speed("hooks: [{type: pacer, kwargs: {pace: 3}}]"), "3");
  EXPECT_EQ(Speed("hooks: [{type: pacer}]"), "1");
  EXPECT_EQ(Speed("CAR: {SPEED: 3}\nhooks: [{type: pacer}]"), "3");
  EXPECT_EQ(Speed("CAR: {SPEED: 3}\nhooks: [{type: pacer, kwargs: {pace: 3}}]"), "3");
}

TEST_F(RunKeysTest, AContradiction_NamesBoth) {
  EXPECT_EQ(Speed("CAR: {SPEED: 2}\nhooks:\n  - {type: pacer, kwargs: {pace: 3}}"),
            "test.yaml:3: config.hooks.0.kwargs.pace means config.CAR.SPEED: 3, and test.yaml:1 sets that to '2'; "
            "expected one of the two, or the same in both");
}

TEST_F(RunKeysTest, AValueThatTheRunsKeyDoesNotTake_IsNamedAsTheUserHasWrittenIt) {
  EXPECT_THAT(Speed("hooks:\n  - {type: pacer, kwargs: {pace: 0}}"),
              HasSubstr("test.yaml:2: config.hooks.0.kwargs.pace is '0', expected an integer of at least 1"));
}

// A run's own train_config.yaml sets every key.
TEST_F(RunKeysTest, AResolvedConfigurationThatIsReadAgain_MeansTheSame) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode first, Resolve("hooks: [{type: pacer, kwargs: {pace: 3}}]"));
  ASSERT_OK_AND_ASSIGN(const ConfigNode again, Resolve(WriteYaml(first)));
  EXPECT_TRUE(again == first);
}

}  // namespace
}  // namespace ssl
