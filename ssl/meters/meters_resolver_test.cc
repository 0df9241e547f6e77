// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/meters_resolver.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ConfigNode Config(const std::string& yaml) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> config = ParseYaml(yaml, "test.yaml", &warnings);
  EXPECT_OK(config);
  return config.ok() ? *std::move(config) : ConfigNode::Map();
}

ConfigNode Resolved(const std::string& yaml) {
  ConfigNode config = Config(yaml);
  EXPECT_OK(ResolveMeters(&config));
  return config;
}

constexpr char kFeatures[] = R"(
METERS: {names: [accuracy_list_meter], accuracy_list_meter: {num_meters: 1, topk_values: [1]}}
MODEL:
  FEATURE_EVAL_SETTINGS:
    EVAL_MODE_ON: True
    FREEZE_TRUNK_ONLY: True
    LINEAR_EVAL_FEAT_POOL_OPS_MAP: [["conv1", ["AvgPool2d", [[10, 10], 10, 4]]], ["res5", ["Identity", []]]]
)";

TEST(MetersResolver, DeprecatedName_JoinsTheOthers) {
  EXPECT_EQ(*Resolved("METERS: {name: b, names: [a, c]}").FindPath("METERS.names"), Config("[a, c, b]"));
  EXPECT_EQ(*Resolved("METERS: {name: a, names: [a, c, a]}").FindPath("METERS.names"), Config("[a, c]"));
  EXPECT_EQ(*Resolved("METERS: {name: a, names: null}").FindPath("METERS.names"), Config("[a]"));
  EXPECT_EQ(*Resolved("METERS: {name: '', names: []}").FindPath("METERS.names"), Config("[]"));
}

TEST(MetersResolver, NamesThatAreNoList_AreLeftForTheirReader) {
  EXPECT_EQ(Resolved("METERS: {name: a, names: b}").FindPath("METERS.names")->text(), "b");
}

TEST(MetersResolver, ExtractedFeatures_AreTheOutputsOfListMeters) {
  const ConfigNode config = Resolved(kFeatures);

  for (const char* meter : {"accuracy_list_meter", "mean_ap_list_meter", "precision_at_k_list_meter"}) {
    const ConfigNode& section = config.Section(std::string("METERS.") + meter);
    EXPECT_EQ(section.Find("num_meters")->text(), "2") << meter;
    EXPECT_EQ(*section.Find("meter_names"), Config("[conv1, res5]")) << meter;
  }
  EXPECT_EQ(*config.FindPath("METERS.accuracy_list_meter.topk_values"), Config("[1]"));
}

TEST(MetersResolver, ModelsThatTrainTheirTrunk_KeepWhatWasWritten) {
  for (const char* key : {"EVAL_MODE_ON", "FREEZE_TRUNK_ONLY"}) {
    ConfigNode config = Config(kFeatures);
    config.SetPath(std::string("MODEL.FEATURE_EVAL_SETTINGS.") + key, ConfigNode::FromBool(false));
    const ConfigNode before = config;

    EXPECT_OK(ResolveMeters(&config));

    EXPECT_EQ(config, before) << key;
  }
}

TEST(MetersResolver, OutputMask_TurnsTheCheckForNanOff) {
  const std::string data = "DATA: {TEST: {DATA_SOURCES: [disk_folder]}}\nHOOKS: {CHECK_NAN: True}\n";

  EXPECT_EQ(Resolved(data + "METERS: {model_output_mask: True}").FindPath("HOOKS.CHECK_NAN")->text(), "false");
  EXPECT_EQ(Resolved(data + "METERS: {model_output_mask: False}").FindPath("HOOKS.CHECK_NAN")->text(), "True");
}

TEST(MetersResolver, OutputMask_NeedsATestSource) {
  for (const char* data : {"", "DATA: {TEST: {DATA_SOURCES: []}}", "DATA: {TEST: {DATA_SOURCES: null}}"}) {
    ConfigNode config = Config(std::string("METERS:\n  model_output_mask: True\n") + data);

    EXPECT_THAT(ResolveMeters(&config),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("test.yaml:2: config.METERS.model_output_mask is true, but "
                                   "config.DATA.TEST.DATA_SOURCES is empty; expected a source")))
        << data;
  }
}

TEST(MetersResolver, EmaMeters_NeedAMeter) {
  ConfigNode config = Config("HOOKS:\n  EMA_MODEL:\n    ENABLE_EMA_METERS: True\nMETERS: {names: []}");

  EXPECT_THAT(ResolveMeters(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:3"), HasSubstr("config.METERS.names is empty"))));
  EXPECT_OK(ResolveMeters(&(config = Config("HOOKS: {EMA_MODEL: {ENABLE_EMA_METERS: True}}\nMETERS: {names: [a]}"))));
}

TEST(MetersResolver, FlagsOfAnotherKind_AreNamed) {
  ConfigNode config = Config("METERS: {model_output_mask: perhaps}");

  EXPECT_THAT(ResolveMeters(&config), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("perhaps")));
}

}  // namespace
}  // namespace ssl
