// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/foreign_run_blocks.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/register_core.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/optim/register_optim.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ForeignRunBlocksTest : public ::testing::Test {
 protected:
  ForeignRunBlocksTest() {
    EXPECT_OK(RegisterCore(&registries_));
    EXPECT_OK(RegisterOptim(&registries_));
    EXPECT_OK(RegisterHooks(&registries_));
  }

  absl::StatusOr<ConfigNode> Resolve(const std::string& yaml) {
    SSL_ASSIGN_OR_RETURN(const ConfigNode config, ParseYaml(yaml, "test.yaml", nullptr));
    return ResolveConfig(config, registries_);
  }

  // The values of our keys that `yaml` comes to, "5 0", or what is wrong with it.
  std::string Values(const std::string& yaml, const std::vector<std::string>& keys) {
    const absl::StatusOr<ConfigNode> config = Resolve(yaml);
    if (!config.ok()) return std::string(config.status().message());
    return absl::StrJoin(keys, " ",
                         [&](std::string* out, const std::string& key) { out->append(config->FindPath(key)->text()); });
  }

  std::string Error(const std::string& yaml) { return std::string(Resolve(yaml).status().message()); }

  Registries registries_;
};

TEST_F(ForeignRunBlocksTest, EachKey_BecomesOurs) {
  EXPECT_EQ(Values("trainer: {max_epoch: 19}", {"OPTIMIZER.num_epochs"}), "19");
  EXPECT_EQ(Values("trainer: {test_freq: 19}", {"TEST_EVERY_NUM_EPOCH", "TEST_ANCHOR", "TEST_START"}), "19 0 1");
  EXPECT_EQ(Values("trainer: {test_start: 5}", {"TEST_EVERY_NUM_EPOCH", "TEST_ANCHOR", "TEST_START"}), "1 0 5");
  const std::vector<std::string> saves = {"CHECKPOINT.CHECKPOINT_FREQUENCY", "CHECKPOINT.CHECKPOINT_ANCHOR",
                                          "CHECKPOINT.CHECKPOINT_START", "CHECKPOINT.KEEP_LAST"};
  EXPECT_EQ(Values("trainer: {save_freq: 3}", saves), "3 0 1 0");
  EXPECT_EQ(Values("trainer: {save_start: 4}", saves), "1 0 4 0");
  EXPECT_EQ(Values("trainer: {save_freq: 3}\nCHECKPOINT: {KEEP_LAST: 7}", saves), "3 0 1 7");
  EXPECT_EQ(Values("trainer: {save_cur_start: 15}", {"CHECKPOINT.ROLLING_START"}), "15");
  EXPECT_EQ(Values("trainer: {save_cur_start: -1}", {"CHECKPOINT.ROLLING_START"}), "-1");
  EXPECT_EQ(Values("trainer: {save_cur_freq: 2}", {"CHECKPOINT.ROLLING_FREQUENCY"}), "2");
  EXPECT_EQ(Values("trainer: {is_eval: False}", {"TEST_MODEL"}), "False");
  EXPECT_EQ(Values("saver: {auto_resume: False}", {"CHECKPOINT.AUTO_RESUME"}), "False");
}

TEST_F(ForeignRunBlocksTest, OnlyTheLatest_IsSavedByItsOwnFrequency) {
  const std::vector<std::string> keys = {"CHECKPOINT.KEEP_LAST", "CHECKPOINT.CHECKPOINT_FREQUENCY",
                                         "CHECKPOINT.CHECKPOINT_ITER_FREQUENCY", "CHECKPOINT.CHECKPOINT_ANCHOR"};
  EXPECT_EQ(Values("trainer: {only_save_latest: True}", keys), "1 1 -1 0");
  EXPECT_EQ(Values("saver: {only_save_latest: True}", keys), "1 1 -1 0");
  EXPECT_EQ(Values("trainer: {only_save_latest: True, save_latest_freq: 500}", keys), "1 -1 500 1") << "iterations";
  EXPECT_EQ(Values("saver: {only_save_latest: True, save_latest_freq: 5}", keys), "1 5 -1 0") << "epochs";
  EXPECT_EQ(Values("trainer: {only_save_latest: False}\nsaver: {only_save_latest: True}", {"CHECKPOINT.KEEP_LAST"}),
            Values("SEED_VALUE: 1", {"CHECKPOINT.KEEP_LAST"}));
}

TEST_F(ForeignRunBlocksTest, WhatHasNoEffectThere_IsWarnedOf) {
  const CapturedLog log;
  EXPECT_EQ(Values("trainer: {only_save_latest: True, save_freq: 5}", {"CHECKPOINT.CHECKPOINT_FREQUENCY"}), "1");
  EXPECT_OK(Resolve("saver: {save_latest_freq: 5}"));
  EXPECT_THAT(log.warnings,
              ElementsAre(HasSubstr("config.trainer.save_freq has no effect beside config.trainer.only_save_latest"),
                          HasSubstr("config.saver.save_latest_freq has no effect without only_save_latest")));
}

TEST_F(ForeignRunBlocksTest, DirectoriesOfTheirs_AreWarnedOfAndGone) {
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const ConfigNode config, Resolve("saver: {save_dir: a, results_dir: b}"));
  EXPECT_EQ(config.Find("saver"), nullptr);
  EXPECT_THAT(log.warnings,
              ElementsAre(HasSubstr("test.yaml:1: config.saver.save_dir has no effect beside config.CHECKPOINT.DIR"),
                          HasSubstr("config.saver.results_dir has no effect")));
}

// What is refused comes to nothing, and must not be told as if it had.
TEST_F(ForeignRunBlocksTest, BlocksThatAreRefused_HaveNoOtherLine) {
  const CapturedLog log;
  EXPECT_THAT(Error("trainer: {only_save_latest: True, save_latest_freq: 0}"), HasSubstr("save_latest_freq is '0'"));
  EXPECT_THAT(log.lines, IsEmpty());
}

TEST_F(ForeignRunBlocksTest, TheLog_SaysWhatAKeyCameTo) {
  const CapturedLog log;
  EXPECT_OK(Resolve("trainer: {test_freq: 3}"));
  EXPECT_THAT(log.lines, ElementsAre("test.yaml:1: config.trainer.test_freq: 3 is config.TEST_EVERY_NUM_EPOCH: 3",
                                     "test.yaml:1: config.trainer.test_freq: 3 is config.TEST_ANCHOR: 0"));
}

TEST_F(ForeignRunBlocksTest, Contradictions_NameBoth) {
  EXPECT_EQ(Error("OPTIMIZER: {num_epochs: 100}\ntrainer: {max_epoch: 19}"),
            "test.yaml:2: config.trainer.max_epoch means config.OPTIMIZER.num_epochs: 19, and test.yaml:1 sets that to "
            "'100'; expected one of the two, or the same in both");
  EXPECT_THAT(Error("CHECKPOINT: {CHECKPOINT_ANCHOR: 1}\ntrainer: {save_freq: 2}"),
              HasSubstr("config.trainer.save_freq means config.CHECKPOINT.CHECKPOINT_ANCHOR: 0, and test.yaml:1"));
  EXPECT_THAT(Error("CHECKPOINT: {KEEP_LAST: 3}\ntrainer: {only_save_latest: True}"),
              HasSubstr("config.trainer.only_save_latest means config.CHECKPOINT.KEEP_LAST: 1, and test.yaml:1"));
  EXPECT_EQ(Values("OPTIMIZER: {num_epochs: 19}\ntrainer: {max_epoch: 19}", {"OPTIMIZER.num_epochs"}), "19");
}

TEST_F(ForeignRunBlocksTest, TheSameInOtherLetters_IsNoContradiction) {
  EXPECT_EQ(Values("TEST_MODEL: True\ntrainer: {is_eval: true}", {"TEST_MODEL"}), "True");
  EXPECT_EQ(Values("OPTIMIZER: {num_epochs: 019}\ntrainer: {max_epoch: 19}", {"OPTIMIZER.num_epochs"}), "019");
  ASSERT_OK_AND_ASSIGN(const ConfigNode first, Resolve("SEED_VALUE: 1"));
  EXPECT_OK(Resolve(absl::StrCat(WriteYaml(first), "saver: {auto_resume: True}\n")))
      << "a run's own train_config.yaml writes true";
}

// That program's defaults, as its files may spell them out.
TEST_F(ForeignRunBlocksTest, MinusOne_SetsNothing) {
  const std::vector<std::string> keys = {"OPTIMIZER.num_epochs",
                                         "TEST_EVERY_NUM_EPOCH",
                                         "TEST_ANCHOR",
                                         "CHECKPOINT.CHECKPOINT_FREQUENCY",
                                         "CHECKPOINT.CHECKPOINT_ITER_FREQUENCY",
                                         "CHECKPOINT.KEEP_LAST"};
  EXPECT_EQ(Values("trainer: {max_iter: -1, max_epoch: -1, test_freq: -1, test_start: -1, save_freq: -1, save_start: "
                   "-1, save_cur_freq: -1, save_latest_freq: -1}",
                   keys),
            Values("SEED_VALUE: 1", keys));
  EXPECT_EQ(Values("trainer: {only_save_latest: True, save_latest_freq: -1}", keys),
            Values("trainer: {only_save_latest: True}", keys));
}

TEST_F(ForeignRunBlocksTest, BlocksOfOtherThings_AreRefusedWithWhatSaysItHere) {
  EXPECT_THAT(Error("trainer: {optimizer: {type: SGD, kwargs: {lr: 0.1}}}"),
              AllOf(HasSubstr("test.yaml:1: config.trainer.optimizer is a map, which has no effect; expected it to "),
                    HasSubstr("OPTIMIZER says it here")));
  EXPECT_THAT(Error("trainer: {lr_scheduler: {type: Cosine}}"), HasSubstr("OPTIMIZER.param_schedulers says it"));
  EXPECT_THAT(Error("saver: {pretrain_model: a.pth}"), HasSubstr("MODEL.WEIGHTS_INIT.PARAMS_FILE says it here"));
  EXPECT_THAT(Error("saver: {resume_model: a.pth}"), HasSubstr("a run goes on in its CHECKPOINT.DIR"));
  EXPECT_OK(
      Resolve("saver: {pretrain_model: null, resume_model: '', save_dir: a, results_dir: b}\ntrainer: "
              "{optimizer: {}}"));
}

TEST_F(ForeignRunBlocksTest, WrongValues_AreNamedAsTheUserHasWrittenThem) {
  EXPECT_THAT(Error("trainer: {max_epoch: often}"), HasSubstr("test.yaml:1: config.trainer.max_epoch is 'often'"));
  EXPECT_THAT(Error("trainer: {test_freq: 0}"), HasSubstr("config.trainer.test_freq is '0', expected an integer of"));
  EXPECT_THAT(Error("trainer: {only_save_latest: True, save_latest_freq: 0}"),
              HasSubstr("config.trainer.save_latest_freq is '0', expected an integer of at least 1"));
  EXPECT_THAT(Error("trainer: {max_iter: 90000}"),
              AllOf(HasSubstr("config.trainer.max_iter is '90000'"), HasSubstr("expected config.trainer.max_epoch")));
  EXPECT_THAT(Error("trainer: {test_freq: 0, save_freq: 0, max_iter: 1}"),
              AllOf(HasSubstr("test_freq"), HasSubstr("max_iter")));
}

// A run's own train_config.yaml sets every key, and may go on with another number of epochs.
TEST_F(ForeignRunBlocksTest, TheResolvedConfiguration_HasOurKeysAlone) {
  ASSERT_OK_AND_ASSIGN(const ConfigNode first, Resolve("trainer: {max_epoch: 19, is_eval: True}"));
  EXPECT_EQ(first.Find("trainer"), nullptr);
  EXPECT_EQ(first.Find("saver"), nullptr);
  ASSERT_OK_AND_ASSIGN(const ConfigNode again, Resolve(WriteYaml(first)));
  EXPECT_TRUE(again == first);
}

TEST_F(ForeignRunBlocksTest, WithoutTheBlocks_NothingIsSaid) {
  const CapturedLog log;
  EXPECT_OK(Resolve("OPTIMIZER: {num_epochs: 3}"));
  EXPECT_THAT(log.lines, IsEmpty());
}

}  // namespace
}  // namespace ssl
