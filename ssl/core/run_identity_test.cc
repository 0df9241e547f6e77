// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_identity.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConfig[] = R"(
OPTIMIZER: {lr: 0.1, num_epochs: 10}
LOG_FREQUENCY: 10
DATA:
  TRAIN:
    TRANSFORMS: [{name: crop, size: 32}, {name: flip, p: 0.5}]
)";

struct LoggingOptions : public Options {
  int64_t frequency = 10;
  int64_t since_then = 3;
  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("LOG_FREQUENCY", &frequency, Doc("lines").MayChange());
    visitor.Field("NEW_OPTION", &since_then, Doc("a key that older runs lack"));
  }
};

class RunIdentityTest : public ::testing::Test {
 protected:
  RunIdentityTest() {
    EXPECT_OK(catalog_.Add("", [] { return std::make_unique<LoggingOptions>(); }));
  }

  // What a run with `text` finds when it resumes one that was saved with kConfig.
  absl::Status Resume(const std::string& text, std::vector<std::string> allow = {}) {
    const ConfigNode saved = Parsed(kConfig);
    const ConfigNode now = Parsed(text);
    return RunIdentity(now, catalog_, std::move(allow))
        .CheckResume(RunIdentity(saved, catalog_, {}).ToJson(), "step_7/config.json", &changes_);
  }
  absl::Status ResumeWith(const std::string& from, const std::string& to, std::vector<std::string> allow = {}) {
    return Resume(absl::StrReplaceAll(kConfig, {{from, to}}), std::move(allow));
  }

  OptionCatalog catalog_;
  std::vector<std::string> changes_;  // what was accepted
};

TEST_F(RunIdentityTest, SameSettings_InAnySpelling_MayGoOn) {
  EXPECT_OK(Resume(kConfig));
  EXPECT_OK(ResumeWith("lr: 0.1", "lr: 1e-1"));
  EXPECT_OK(ResumeWith("p: 0.5", "p: .50"));
}

TEST_F(RunIdentityTest, EveryOtherSetting_IsNamedWithBothValuesPlaceAndWaysOut) {
  const absl::Status status =
      Resume(absl::StrReplaceAll(kConfig, {{"lr: 0.1", "lr: 0.2"}, {"num_epochs: 10", "num_epochs: 20"}}));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("step_7/config.json"),
                                     HasSubstr("OPTIMIZER.lr: 0.1 in the checkpoint, 0.2 now (f.yaml:2)"),
                                     HasSubstr("OPTIMIZER.num_epochs: 10 in the checkpoint, 20 now (f.yaml:2)"))));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("another config.CHECKPOINT.DIR"), HasSubstr("OVERWRITE_EXISTING=True"),
                                     HasSubstr("ALLOW_CHANGES=[OPTIMIZER.lr,OPTIMIZER.num_epochs]"))));
}

TEST_F(RunIdentityTest, AllowedKeysAndSections_AreTold) {
  EXPECT_OK(ResumeWith("lr: 0.1", "lr: 0.2", {"OPTIMIZER.lr"}));
  EXPECT_OK(ResumeWith("lr: 0.1", "lr: 0.2", {"config.OPTIMIZER"}));
  EXPECT_THAT(changes_, ElementsAre(HasSubstr("OPTIMIZER.lr: 0.1 in the checkpoint, 0.2 now"), HasSubstr("0.2 now")));
  EXPECT_FALSE(ResumeWith("lr: 0.1", "lr: 0.2", {"OPTIMIZER.l"}).ok());
  EXPECT_FALSE(ResumeWith("lr: 0.1", "lr: 0.2", {"OPTIMIZER.num_epochs"}).ok());
}

TEST_F(RunIdentityTest, KeysThatMayChange_AreTold) {
  EXPECT_OK(ResumeWith("LOG_FREQUENCY: 10", "LOG_FREQUENCY: 1"));
  EXPECT_THAT(changes_, ElementsAre(HasSubstr("LOG_FREQUENCY: 10 in the checkpoint, 1 now (f.yaml:3)")));
  EXPECT_OK(Resume(kConfig));
  EXPECT_EQ(changes_.size(), 1u);
}

TEST_F(RunIdentityTest, Lists_AreComparedWhole) {
  EXPECT_THAT(ResumeWith("p: 0.5", "p: 0.25"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("DATA.TRAIN.TRANSFORMS: [{name: crop, size: 32}, {name: flip, p: 0.5}] in the")));
  EXPECT_FALSE(
      ResumeWith("{name: crop, size: 32}, {name: flip, p: 0.5}", "{name: flip, p: 0.5}, {name: crop, size: 32}").ok());
}

TEST_F(RunIdentityTest, OrderOfKeys_CountsNowhere) {
  EXPECT_OK(ResumeWith("lr: 0.1, num_epochs: 10", "num_epochs: 10, lr: 0.1"));
  EXPECT_OK(ResumeWith("{name: flip, p: 0.5}", "{p: 0.5, name: flip}"));
  EXPECT_FALSE(ResumeWith("{name: flip, p: 0.5}", "{p: 0.25, name: flip}").ok());
}

// The text of a checkpoint that was saved before keys were sorted.
TEST_F(RunIdentityTest, OrderOfKeysInAnOlderCheckpoint_IsThatOfItsFile) {
  const ConfigNode now = Parsed("T: [{name: flip, amount: {p: 1, a: 2}}]");
  const std::string saved =
      R"({"format_version": 1, "settings": {"T": "[{name: flip, amount: {p: 1, a: 2}}]"}, "counts": {}})";
  EXPECT_OK(RunIdentity(now, catalog_, {}).CheckResume(saved, "step_7/config.json", &changes_));
  const ConfigNode other = Parsed("T: [{name: flip, amount: {p: 1, a: 3}}]");
  EXPECT_FALSE(RunIdentity(other, catalog_, {}).CheckResume(saved, "step_7/config.json", &changes_).ok());
}

// The list stands in a file, and what was changed in it on the command line.
TEST_F(RunIdentityTest, WhatDiffersInAList_HasItsOwnPlace) {
  const ConfigNode saved = Parsed(kConfig);
  ConfigNode now = Parsed(kConfig);
  ConfigNode size = ConfigNode::FromInt(64);
  size.Relocate({"command line", 5});
  now.SetPath("DATA.TRAIN.TRANSFORMS.0.size", std::move(size));
  const absl::Status refused =
      RunIdentity(now, catalog_, {}).CheckResume(RunIdentity(saved, catalog_, {}).ToJson(), "config.json", &changes_);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("[{name: crop, size: 64}, {name: flip, p: 0.5}] now (command line:5)\n")));
  EXPECT_THAT(ResumeWith("{name: flip, p: 0.5}", "{name: flip}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(" now (f.yaml:6)\n")));
}

TEST_F(RunIdentityTest, AnotherNumberOfSamples_NamesWhereTheyWereCounted) {
  const ConfigNode config =
      Parsed(absl::StrReplaceAll(kConfig, {{"  TRAIN:\n", "  TRAIN:\n    DATA_PATHS: [a, b]\n"}}));
  RunIdentity saved(config, catalog_, {});
  saved.AddCount("DATA.TRAIN.num_samples", 40);
  RunIdentity now(config, catalog_, {});
  now.AddCount("DATA.TRAIN.num_samples", 41);
  EXPECT_THAT(
      now.CheckResume(saved.ToJson(), "config.json", &changes_),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("DATA.TRAIN.num_samples: 40 in the checkpoint, 41 now (counted in a, b; f.yaml:6)\n")));
}

TEST_F(RunIdentityTest, LongValues_ShowWhereTheyDiffer) {
  std::string items;
  for (int i = 0; i < 200; ++i) items += "{name: crop, size: 32}, ";
  const ConfigNode saved = Parsed("T: [" + items + "{name: end, p: 1}]");
  const ConfigNode now = Parsed("T: [" + items + "{name: end, p: 2}]");
  const absl::Status status =
      RunIdentity(now, catalog_, {}).CheckResume(RunIdentity(saved, catalog_, {}).ToJson(), "step_7", &changes_);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("{name: end, p: 2}] now")));
  EXPECT_LT(status.message().size(), 700u);
}

TEST_F(RunIdentityTest, KeysThatCameOrWent) {
  // An option that the saved run did not know had its default.
  EXPECT_OK(Resume(std::string(kConfig) + "NEW_OPTION: 3\n"));
  EXPECT_THAT(Resume(std::string(kConfig) + "NEW_OPTION: 4\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NEW_OPTION: 3 in the checkpoint, 4 now")));
  EXPECT_THAT(ResumeWith("lr: 0.1, ", ""), StatusIs(absl::StatusCode::kInvalidArgument,
                                                    HasSubstr("OPTIMIZER.lr: 0.1 in the checkpoint, (not set) now")));
}

TEST_F(RunIdentityTest, Counts_AreComparedLikeSettings) {
  const ConfigNode config = Parsed(kConfig);
  RunIdentity saved(config, catalog_, {});
  saved.AddCount("DATA.TRAIN.num_samples", 60000);
  RunIdentity now(config, catalog_, {});
  now.AddCount("DATA.TRAIN.num_samples", 5000);
  EXPECT_THAT(now.CheckResume(saved.ToJson(), "step_7", &changes_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("DATA.TRAIN.num_samples: 60000 in the checkpoint, 5000 now\n")));
  RunIdentity allowed(config, catalog_, {"DATA.TRAIN"});
  allowed.AddCount("DATA.TRAIN.num_samples", 5000);
  EXPECT_OK(allowed.CheckResume(saved.ToJson(), "step_7", &changes_));
}

TEST_F(RunIdentityTest, Classes_AreComparedByNameAndPlace) {
  const ConfigNode config = Parsed(kConfig);
  RunIdentity saved(config, catalog_, {});
  saved.SetClasses({"ant", "bee, or wasp", "cat"});
  const std::string json = saved.ToJson();
  RunIdentity same(config, catalog_, {});
  same.SetClasses({"ant", "bee, or wasp", "cat"});
  EXPECT_OK(same.CheckResume(json, "step_7", &changes_));
  RunIdentity renamed(config, catalog_, {});
  renamed.AddCount("DATA.TRAIN.num_samples", 60);
  renamed.SetClasses({"bee, or wasp", "cat", "zant"});
  EXPECT_THAT(
      renamed.CheckResume(json, "step_7", &changes_),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("DATA.TRAIN.classes: "), HasSubstr("zant"))));
  RunIdentity allowed(config, catalog_, {"DATA.TRAIN.classes"});
  allowed.SetClasses({"bee, or wasp", "cat", "zant"});
  EXPECT_OK(allowed.CheckResume(json, "step_7", &changes_));
}

TEST_F(RunIdentityTest, ClassesThatOneSideDoesNotTell_AreNotCompared) {
  const ConfigNode config = Parsed(kConfig);
  const RunIdentity untold(config, catalog_, {});
  RunIdentity told(config, catalog_, {});
  told.SetClasses({"ant", "bee"});
  EXPECT_OK(told.CheckResume(untold.ToJson(), "step_7", &changes_));
  EXPECT_OK(untold.CheckResume(told.ToJson(), "step_7", &changes_));
}

TEST_F(RunIdentityTest, UpdatesPerEpoch_CannotChangeWhateverIsAllowed) {
  const ConfigNode config = Parsed(kConfig);
  RunIdentity saved(config, catalog_, {});
  saved.AddCount("DATA.TRAIN.num_samples", 60000);
  saved.SetUpdates(100, 1000);
  RunIdentity now(config, catalog_, {"DATA", "DATA.TRAIN.updates_per_epoch"});
  now.AddCount("DATA.TRAIN.num_samples", 30000);
  now.SetUpdates(50, 500);
  EXPECT_THAT(now.CheckResume(saved.ToJson(), "run/step_7/config.json", &changes_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("has 100 updates, and would go on with 50"),
                             HasSubstr("DATA.TRAIN.num_samples: 60000 in the checkpoint, 30000 now"),
                             HasSubstr("PARAMS_FILE=run/step_7"))));
}

TEST_F(RunIdentityTest, UpdatesThatWereNotRecorded_ForbidWhatTheyFollowFrom) {
  const ConfigNode config = Parsed(kConfig);
  RunIdentity saved(config, catalog_, {});
  saved.AddCount("DATA.TRAIN.num_samples", 60000);
  const auto resume = [&](const std::string& text, int64_t samples) {
    const ConfigNode changed = Parsed(text);
    RunIdentity now(changed, catalog_, {"DATA", "OPTIMIZER"});
    now.AddCount("DATA.TRAIN.num_samples", samples);
    now.SetUpdates(100, 1000);
    return now.CheckResume(saved.ToJson(), "run/step_7/config.json", &changes_);
  };
  EXPECT_OK(resume(kConfig, 60000));
  EXPECT_OK(resume(absl::StrReplaceAll(kConfig, {{"lr: 0.1", "lr: 0.2"}}), 60000));
  for (const absl::Status& status :
       {resume(kConfig, 30000),
        resume(absl::StrReplaceAll(kConfig, {{"lr: 0.1", "lr: 0.1, grad_acc_steps: 2"}}), 60000),
        resume(absl::StrCat(kConfig, "    BATCHSIZE_PER_REPLICA: 2\n"), 60000)}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("did not record, and would go on with 100:\n"),
                                       HasSubstr("cannot accept this"), HasSubstr("PARAMS_FILE=run/step_7"))));
  }
}

TEST_F(RunIdentityTest, WhatCannotGoOn_SaysSoWithAllThatDiffersAndWhatIsAllowedAlready) {
  const ConfigNode config = Parsed(kConfig);
  RunIdentity saved(config, catalog_, {});
  saved.SetUpdates(7, 70);
  const ConfigNode shorter = Parsed(absl::StrReplaceAll(kConfig, {{"num_epochs: 10", "num_epochs: 1"}}));
  RunIdentity now(shorter, catalog_, {"OPTIMIZER.num_epochs"});
  now.SetUpdates(7, 7);
  EXPECT_OK(now.CheckResume(saved.ToJson(), "run/step_7/config.json", &changes_, {}, 7));
  EXPECT_THAT(now.CheckResume(saved.ToJson(), "run/step_21/config.json", &changes_, {}, 21),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("step_21/config.json: lies behind the end of this run: iteration 21 of 7:\n"),
                             HasSubstr("cannot accept this; put back config.OPTIMIZER.num_epochs=10, or start"),
                             HasSubstr("PARAMS_FILE=run/step_21"), Not(HasSubstr("ALLOW_CHANGES=[")))));
  const ConfigNode other = Parsed(absl::StrReplaceAll(kConfig, {{"num_epochs: 10", "num_epochs: 1"}, {"0.1", "0.2"}}));
  RunIdentity both(other, catalog_, {"LOG_FREQUENCY"});
  both.SetUpdates(7, 7);
  EXPECT_THAT(both.CheckResume(saved.ToJson(), "run/step_21/config.json", &changes_, {}, 21),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("OPTIMIZER.lr: 0.1 in"), HasSubstr("put back config.OPTIMIZER.num_epochs=10 ("),
                             HasSubstr("the rest, or accept it with "
                                       "config.CHECKPOINT.ALLOW_CHANGES=[LOG_FREQUENCY,OPTIMIZER.lr])"))));
}

TEST_F(RunIdentityTest, AdviceNamesWhatIsAllowedAlready) {
  EXPECT_THAT(
      Resume(absl::StrReplaceAll(kConfig, {{"lr: 0.1", "lr: 0.2"}, {"num_epochs: 10", "num_epochs: 20"}}),
             {"OPTIMIZER.lr"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ALLOW_CHANGES=[OPTIMIZER.lr,OPTIMIZER.num_epochs]")));
}

// A number of ranks that is fixed: a batch size that fits to another one would not help.
TEST_F(RunIdentityTest, OtherVirtualRanks_AreNamedThemselves) {
  const ConfigNode four = Parsed("DISTRIBUTED: {VIRTUAL_RANKS: 4}\nDATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 8}}\n");
  const ConfigNode two = Parsed("DISTRIBUTED: {VIRTUAL_RANKS: 2}\nDATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 8}}\n");
  RunIdentity saved(four, catalog_, {});
  RunIdentity now(two, catalog_, {});
  for (RunIdentity* identity : {&saved, &now}) identity->SetUpdates(identity == &saved ? 5 : 10, 100);
  EXPECT_THAT(now.CheckResume(saved.ToJson(), "step_7", &changes_, {4, 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("DISTRIBUTED.VIRTUAL_RANKS: 4 in the checkpoint, 2 now"),
                             HasSubstr("put back config.DISTRIBUTED.VIRTUAL_RANKS=4,"),
                             Not(HasSubstr("BATCHSIZE_PER_REPLICA=")))));
  EXPECT_THAT(
      RunIdentity(two, catalog_, {"DISTRIBUTED.VIRTUAL_RANKS"})
          .CheckResume(RunIdentity(four, catalog_, {}).ToJson(), "step_7", &changes_, {4, 2}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("set config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=16")));
}

constexpr char kOnCpu[] = "{MACHINE: {DEVICE: cpu}, MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: ''}}}";
constexpr char kOnGpu[] = "{MACHINE: {DEVICE: gpu}, MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: ''}}}";

// Without AMP_DTYPE a run on another device would compute in another format.
TEST_F(RunIdentityTest, NumberFormatOfAnotherDevice_IsRefusedWithTheOneToSet) {
  const auto resume = [this](const std::string& saved, const std::string& now) {
    const ConfigNode before = Parsed(saved);
    const ConfigNode after = Parsed(now);
    return RunIdentity(after, catalog_, {"MACHINE.DEVICE"})
        .CheckResume(RunIdentity(before, catalog_, {}).ToJson(), "step_7/config.json", &changes_);
  };
  EXPECT_THAT(resume(kOnCpu, kOnGpu),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("MODEL.AMP_PARAMS.AMP_DTYPE: bfloat16 in the checkpoint, float16 now"),
                             HasSubstr("set config.MODEL.AMP_PARAMS.AMP_DTYPE=bfloat16 to go on"))));
  EXPECT_THAT(resume(kOnGpu, kOnCpu),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("AMP_DTYPE=float16 to go on")));
  EXPECT_OK(resume(kOnCpu, absl::StrReplaceAll(kOnGpu, {{"''", "bfloat16"}})));
  EXPECT_OK(resume(kOnGpu, absl::StrReplaceAll(kOnCpu, {{"''", "float16"}})));
  EXPECT_OK(resume(kOnGpu, kOnGpu));
  EXPECT_OK(resume(absl::StrReplaceAll(kOnCpu, {{"True", "False"}}), absl::StrReplaceAll(kOnGpu, {{"True", "False"}})));
}

// A run in float32 computes in no format that could be put back.
TEST_F(RunIdentityTest, MixedPrecisionThatIsTurnedOffOrOn_HasNoFormatToAllow) {
  const std::string off = absl::StrReplaceAll(kOnCpu, {{"True", "False"}});
  for (const auto& [saved, now] : {std::pair<std::string, std::string>{kOnCpu, off}, {off, kOnCpu}}) {
    const ConfigNode before = Parsed(saved);
    const ConfigNode after = Parsed(now);
    changes_.clear();
    EXPECT_OK(RunIdentity(after, catalog_, {"MODEL.AMP_PARAMS.USE_AMP"})
                  .CheckResume(RunIdentity(before, catalog_, {}).ToJson(), "step_7/config.json", &changes_));
    EXPECT_THAT(changes_, ElementsAre(HasSubstr("USE_AMP")));
  }
}

// From before the format was recorded.
TEST_F(RunIdentityTest, NumberFormatThatWasNotRecorded_IsThatOfTheSavedDevice) {
  const ConfigNode on_gpu = Parsed(kOnGpu);
  const std::string recorded = RunIdentity(on_gpu, catalog_, {}).ToJson();
  EXPECT_THAT(recorded, HasSubstr("\"float16\""));
  const std::string older = absl::StrReplaceAll(recorded, {{"\"float16\"", "\"\\\"\\\"\""}});
  EXPECT_NE(older, recorded);
  EXPECT_OK(RunIdentity(on_gpu, catalog_, {}).CheckResume(older, "step_7/config.json", &changes_));
  const ConfigNode on_cpu = Parsed(kOnCpu);
  EXPECT_THAT(RunIdentity(on_cpu, catalog_, {"MACHINE.DEVICE"}).CheckResume(older, "step_7/config.json", &changes_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("AMP_DTYPE=float16 to go on")));
}

TEST_F(RunIdentityTest, BytesThatAreNoUtf8_ComeBackEqual) {
  ConfigNode config = Parsed(kConfig);
  config.SetPath("DATA.TRAIN.DATA_PATHS", ConfigNode::FromStrings({"/data/gr\xfc\xdf"}));
  const RunIdentity identity(config, catalog_, {});
  EXPECT_OK(identity.CheckResume(identity.ToJson(), "step_7", &changes_));
}

TEST_F(RunIdentityTest, OtherTexts_AreDataLossThatNamesTheFile) {
  const ConfigNode config = Parsed(kConfig);
  const RunIdentity identity(config, catalog_, {});
  const std::vector<std::string> texts = {"",
                                          "[]",
                                          "{",
                                          "{}",
                                          "{\"format_version\": 2}",
                                          "{\"format_version\": 1}",
                                          "{\"format_version\": 1, \"settings\": [], \"counts\": {}}",
                                          "{\"format_version\": 1, \"settings\": {\"a\": []}, \"counts\": {}}"};
  for (const std::string& text : texts) {
    EXPECT_THAT(identity.CheckResume(text, "step_7/config.json", &changes_),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("file step_7/config.json: ")))
        << text;
  }
}

TEST_F(RunIdentityTest, Describe_TellsPlaceAndValue) {
  const ConfigNode config = Parsed(kConfig);
  const RunIdentity identity(config, catalog_, {});
  EXPECT_EQ(identity.Describe("LOG_FREQUENCY"), "f.yaml:3: config.LOG_FREQUENCY is 10");
  EXPECT_EQ(identity.Describe("X"), "config.X is (not set)");
}

TEST_F(RunIdentityTest, TestOnly_IsToldToTakeAPlaceOfItsOwn) {
  const absl::Status status = ResumeWith("LOG_FREQUENCY: 10", "TEST_ONLY: True");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("TEST_ONLY: (not set) in the checkpoint, true now"),
                                     HasSubstr("a new config.CHECKPOINT.DIR, with "
                                               "config.MODEL.WEIGHTS_INIT.PARAMS_FILE=step_7"))));
  EXPECT_EQ(status.message().find("OVERWRITE_EXISTING"), std::string::npos);
}

TEST_F(RunIdentityTest, SavedSettings_AreComparedBelowASection) {
  const ConfigNode saved = Parsed(kConfig);
  const ConfigNode now = Parsed(absl::StrReplaceAll(kConfig, {{"lr: 0.1", "lr: 0.2"}, {"size: 32", "size: 16"}}));
  const std::string json = RunIdentity(saved, catalog_, {}).ToJson();
  const RunIdentity identity(now, catalog_, {});
  EXPECT_THAT(identity.ChangesBelow("OPTIMIZER", json, "step_7/config.json").value(),
              ElementsAre("OPTIMIZER.lr: 0.1 in the checkpoint, 0.2 now (f.yaml:2)"));
  EXPECT_EQ(identity.SavedSetting("OPTIMIZER.lr", json, "").value(), "0.1");
  EXPECT_EQ(identity.SavedSetting("NEW_OPTION", json, "").value(), "3");
  EXPECT_THAT(identity.ChangesBelow("OPTIMIZER", "{}", "step_7/config.json").status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step_7/config.json")));
}

}  // namespace
}  // namespace ssl
