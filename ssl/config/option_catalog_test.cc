// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/option_catalog.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/config/testing_options.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kIgnored = CompatibilityKey::Support::kIgnored;
constexpr auto kNotYet = CompatibilityKey::Support::kNotYet;

std::unique_ptr<Options> MakeOptions() { return std::make_unique<TestingOptions>(); }
std::unique_ptr<Options> MakeSection() { return std::make_unique<TestingSection>(); }

// One struct above another one and beside keys that are not read.
OptionCatalog SharedMaps() {
  OptionCatalog catalog;
  EXPECT_OK(catalog.Add("LOSS", MakeSection));
  EXPECT_OK(catalog.Add("LOSS.swav_loss", MakeOptions));
  EXPECT_OK(catalog.AddKeys({{"LOSS.swav_loss.output_dir", "\".\"", kIgnored, "nothing is written"},
                             {"LOSS.dino_loss", "{}", kNotYet, "no DINO"},
                             {"DATA.PIN_MEMORY", "true", kIgnored, "in place"}}));
  return catalog;
}

TEST(OptionCatalogTest, Defaults_HoldEveryKeyAtItsPlace) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS.swav_loss", MakeOptions));
  ASSERT_OK(catalog.Add("LOSS", MakeSection));
  ASSERT_OK(catalog.Add("", MakeSection));
  const ConfigNode defaults = catalog.Defaults();
  EXPECT_EQ(defaults.FindPath("LOSS.swav_loss.sinkhorn.num_iters")->text(), "3");
  EXPECT_EQ(defaults.FindPath("LOSS.num_iters")->text(), "3");
  EXPECT_EQ(defaults.FindPath("num_iters")->text(), "3");
  EXPECT_TRUE(defaults.FindPath("LOSS.swav_loss.params")->free_form());
  EXPECT_THAT(catalog.Paths(), ElementsAre("LOSS.swav_loss", "LOSS", ""));
}

struct LoggingOptions : public Options {
  int64_t frequency = 1;
  double rate = 0.1;
  TestingSection timing;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("frequency", &frequency, Doc("of lines").MayChange());
    visitor.Field("rate", &rate, Doc("of learning"));
    visitor.Section("timing", &timing, Doc("of steps").MayChange());
  }
};

TEST(OptionCatalogTest, MayChange_FollowsTheDeclaration) {
  OptionCatalog catalog = SharedMaps();
  ASSERT_OK(catalog.Add("LOG", [] { return std::make_unique<LoggingOptions>(); }));
  ASSERT_OK(catalog.Add("EVALUATION", MakeSection, AtResume::kMayChange));
  EXPECT_TRUE(catalog.MayChange("LOG.frequency"));
  EXPECT_TRUE(catalog.MayChange("LOG.timing.num_iters"));
  EXPECT_TRUE(catalog.MayChange("EVALUATION.num_iters"));
  EXPECT_TRUE(catalog.MayChange("DATA.PIN_MEMORY"));
  EXPECT_TRUE(catalog.MayChange("LOSS.dino_loss.anything"));
  EXPECT_FALSE(catalog.MayChange("LOG.rate"));
  EXPECT_FALSE(catalog.MayChange("LOG"));
  EXPECT_FALSE(catalog.MayChange("LOSS.num_iters"));
  EXPECT_FALSE(catalog.MayChange("unknown.key"));
  EXPECT_FALSE(catalog.MayChange(""));
}

TEST(OptionCatalogTest, KeyDeclaredTwice_IsRefusedAndChangesNothing) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS", MakeOptions));
  const ConfigNode before = catalog.Defaults();
  EXPECT_EQ(catalog.Add("LOSS.sinkhorn", MakeSection),
            absl::AlreadyExistsError("option catalog: key 'LOSS.sinkhorn.num_iters' is declared twice"));
  EXPECT_EQ(catalog.Add("LOSS.name", MakeSection),
            absl::AlreadyExistsError("option catalog: key 'LOSS.name' is declared twice"));
  EXPECT_EQ(catalog.Add("LOSS.params.x", MakeSection),
            absl::AlreadyExistsError("option catalog: key 'LOSS.params' is declared twice"));
  EXPECT_EQ(catalog.Defaults(), before);
  EXPECT_THAT(catalog.Paths(), ElementsAre("LOSS"));
}

TEST(OptionCatalogTest, SeveralKeysDeclaredTwice_AreAllNamed) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS", MakeSection));
  ASSERT_OK(catalog.AddKeys({{"LOSS.name", "x", kIgnored, "n"}}));
  EXPECT_EQ(catalog.Add("LOSS", MakeOptions),
            absl::AlreadyExistsError("option catalog: key 'LOSS.name' is declared twice"));
  const ConfigNode before = catalog.Defaults();
  EXPECT_EQ(catalog.AddKeys({{"LOSS.num_iters", "3", kIgnored, "n"},
                             {"LOSS.new", "3", kIgnored, "n"},
                             {"LOSS.name", "x", kIgnored, "n"}}),
            absl::AlreadyExistsError("option catalog: key 'LOSS.num_iters' is declared twice\n"
                                     "option catalog: key 'LOSS.name' is declared twice"));
  EXPECT_EQ(catalog.AddKeys({{"LOSS.new", "[3", kIgnored, "n"}}),
            absl::InvalidArgumentError("option catalog: default of 'LOSS.new': '[3' is no flow value"));
  EXPECT_EQ(catalog.Defaults(), before);
  EXPECT_EQ(catalog.Entries().size(), 2u);
}

TEST(OptionCatalogTest, UnreadKeys_HaveDefaultsAndHelp) {
  const OptionCatalog catalog = SharedMaps();
  const ConfigNode defaults = catalog.Defaults();
  EXPECT_EQ(defaults.FindPath("LOSS.swav_loss.output_dir")->text(), ".");
  EXPECT_EQ(defaults.FindPath("LOSS.swav_loss.sinkhorn.num_iters")->text(), "3");
  EXPECT_TRUE(defaults.FindPath("LOSS.dino_loss")->free_form());
  EXPECT_EQ(catalog.Help("LOSS.dino"),
            "KEY                    TYPE  DEFAULT  RANGE  MEANING\n"
            "config.LOSS.dino_loss  any   {}              not yet: no DINO\n");
  EXPECT_THAT(catalog.Help("DATA"), HasSubstr("ignored: in place"));
  EXPECT_THAT(catalog.Help("DATA.PIN_MEMORI"), HasSubstr("; did you mean 'config.DATA.PIN_MEMORY'?"));
  EXPECT_THAT(catalog.Paths(), ElementsAre("LOSS", "LOSS.swav_loss"));
}

TEST(OptionCatalogTest, Check_OfTheDefaultsAndOfKnownKeys_IsOk) {
  const OptionCatalog catalog = SharedMaps();
  EXPECT_OK(catalog.Check(catalog.Defaults()));
  EXPECT_OK(catalog.Check(ConfigNode::Map()));
  EXPECT_OK(catalog.Check(Parsed("LOSS:\n  num_iters: 2\n  swav_loss:\n  dino_loss: {x: [1]}\n  new_loss: {y: 1}\n")));
}

TEST(OptionCatalogTest, Check_ReportsEveryWrongValueByLine) {
  EXPECT_EQ(
      SharedMaps().Check(Parsed("DATA: {PIN_MEMORY: 3}\n"
                                "LOSS:\n"
                                "  swav_loss:\n"
                                "    output_dir: [a]\n"
                                "    temperature: 0\n"
                                "    scales: [2, x]\n"
                                "  num_iters: many\n")),
      absl::InvalidArgumentError("f.yaml:1: config.DATA.PIN_MEMORY is '3', expected true or false\n"
                                 "f.yaml:5: config.LOSS.swav_loss.temperature is '0', expected a number above 0\n"
                                 "f.yaml:6: config.LOSS.swav_loss.scales.0 is '2', expected a number between 0 and 1\n"
                                 "f.yaml:6: config.LOSS.swav_loss.scales.1 is 'x', expected a number between 0 and 1\n"
                                 "f.yaml:7: config.LOSS.num_iters is 'many', expected an integer of at least 1"));
}

TEST(OptionCatalogTest, Check_ReportsAWrongSectionOnceForAllItsStructs) {
  EXPECT_EQ(SharedMaps().Check(Parsed("DATA:\nLOSS: swav\n")),
            absl::InvalidArgumentError("f.yaml:2: config.LOSS is 'swav', expected a map"));
}

TEST(OptionCatalogTest, Unsupported_NamesWhatWouldChangeTheRun) {
  const OptionCatalog catalog = SharedMaps();
  EXPECT_THAT(catalog.Unsupported(catalog.Defaults()), IsEmpty());
  const std::vector<UnsupportedKey> keys =
      catalog.Unsupported(Parsed("DATA: {PIN_MEMORY: false}\nLOSS:\n  dino_loss: {momentum: 1}\n"));
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].path, "LOSS.dino_loss");
  EXPECT_EQ(keys[0].location.ToString(), "f.yaml:3");
  EXPECT_EQ(keys[0].value, "a map");
  EXPECT_EQ(keys[0].note, "no DINO");
}

TEST(OptionCatalogTest, Entries_AreEveryKeySortedByPath) {
  std::vector<std::string> lines;
  for (const CatalogEntry& entry : SharedMaps().Entries()) {
    lines.push_back(absl::StrCat(static_cast<int>(entry.status), " ", entry.path, ", ", entry.type, ", ",
                                 entry.default_value, ", ", entry.doc));
  }
  EXPECT_THAT(lines, ElementsAre("1 DATA.PIN_MEMORY, bool, true, in place", "2 LOSS.dino_loss, any, {}, no DINO",
                                 "0 LOSS.num_iters, int, 3, Rounds.",
                                 "0 LOSS.swav_loss.crops, list of int, [2, 6], Crops per size.",
                                 "0 LOSS.swav_loss.devices, list of string, [cpu], Where.",
                                 "0 LOSS.swav_loss.name, string, swav, The method.",
                                 "0 LOSS.swav_loss.normalize, bool, true, Unit rows.",
                                 "1 LOSS.swav_loss.output_dir, string, ., nothing is written",
                                 "0 LOSS.swav_loss.params, any, null, Anything.",
                                 "0 LOSS.swav_loss.queue_length, int, 0, Kept samples.",
                                 "0 LOSS.swav_loss.scales, list of float, [0.5], Area.",
                                 "0 LOSS.swav_loss.sinkhorn.num_iters, int, 3, Rounds.",
                                 "0 LOSS.swav_loss.temperature, float, 0.1, Divides scores."));
}

TEST(OptionCatalogTest, BrokenRegistrations_AreRefused) {
  OptionCatalog catalog;
  EXPECT_EQ(catalog.Add("A..B", MakeSection),
            absl::InvalidArgumentError("option catalog: path 'A..B' has an empty part"));
  EXPECT_EQ(catalog.Add("A", nullptr), absl::InvalidArgumentError("option catalog: factory of 'A' makes no options"));
  EXPECT_EQ(catalog.Add("A", [] { return std::unique_ptr<Options>(); }),
            absl::InvalidArgumentError("option catalog: factory of 'A' makes no options"));
}

TEST(OptionCatalogTest, Help_ShowsTheKeysThatBeginWithThePrefix) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS.swav_loss", MakeOptions));
  ASSERT_OK(catalog.Add("MACHINE", MakeSection));
  for (const char* prefix : {"LOSS.swav_loss.sink", "config.LOSS.swav_loss.sinkhorn"}) {
    EXPECT_EQ(catalog.Help(prefix),
              "KEY                                       TYPE     DEFAULT  RANGE       MEANING\n"
              "config.LOSS.swav_loss.sinkhorn            section                       Balancing.\n"
              "config.LOSS.swav_loss.sinkhorn.num_iters  int      3        at least 1  Rounds.\n")
        << prefix;
  }
  for (const char* prefix : {"", "config", "config."}) {
    EXPECT_THAT(catalog.Help(prefix), HasSubstr("config.MACHINE.num_iters"));
    EXPECT_THAT(catalog.Help(prefix), HasSubstr("config.LOSS.swav_loss.name"));
  }
  EXPECT_THAT(catalog.Help("MACHINE"), Not(HasSubstr("swav")));
}

TEST(OptionCatalogTest, HelpOfNothing_NamesTheNearestKey) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("LOSS.swav_loss", MakeSection));
  EXPECT_EQ(catalog.Help("LOSS.swav_los.num"),
            "no option begins with 'config.LOSS.swav_los.num'"
            "; did you mean 'config.LOSS.swav_loss'?\n");
  EXPECT_EQ(catalog.Help("X"), "no option begins with 'config.X'\n");
}

TEST(OptionCatalogTest, KeysOfTheRoot_AreNamedWithOneDot) {
  OptionCatalog catalog;
  ASSERT_OK(catalog.Add("", MakeSection));
  EXPECT_THAT(catalog.Help("num_iters"), HasSubstr("\nconfig.num_iters "));
  ConfigNode config = ConfigNode::Map();
  config.Set("num_iters", ConfigNode::FromInt(0));
  EXPECT_THAT(catalog.Check(config),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(": config.num_iters is '0'")));
}

}  // namespace
}  // namespace ssl
