// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/settings_without_effect.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/check/testing/check_tokens.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of the tiny SwAV configuration with one token.
std::vector<std::string> WarningsOf(const std::vector<std::string>& tokens) {
  std::vector<std::string> all = {"config=test/swav_tiny"};
  all.insert(all.end(), tokens.begin(), tokens.end());
  const ConfigReport report = CheckTokens(all);
  EXPECT_THAT(report.mistakes, IsEmpty()) << FormatReport(report);
  return report.warnings;
}

TEST(SettingsWithoutEffectTest, EachIsNamedWithItsPlaceAndTheSettingThatDecides) {
  const std::pair<const char*, const char*> cases[] = {
      {"config.MODEL.AMP_PARAMS.AMP_DTYPE=float16",
       "command line:2: config.MODEL.AMP_PARAMS.AMP_DTYPE is 'float16', which has no effect: "
       "config.MODEL.AMP_PARAMS.USE_AMP is 'false'"},
      {"config.HOOKS.EMA_MODEL.DECAY=0.9",
       "command line:2: config.HOOKS.EMA_MODEL.DECAY is '0.9', which has no effect: "
       "config.HOOKS.EMA_MODEL.SAVE_EMA_MODEL is 'false'"},
      {"config.OPTIMIZER.betas=[0.5, 0.6]",
       "command line:2: config.OPTIMIZER.betas is a list, which has no effect: config.OPTIMIZER.name is 'sgd'"},
      {"config.LOSS.moco_loss.queue_size=8",
       "command line:2: config.LOSS.moco_loss.queue_size is '8', which has no effect: config.LOSS.name is 'swav_loss'"},
      {"config.LOSS.dino_loss.momentum=0.5", "config.LOSS.dino_loss.momentum is '0.5', which has no effect"},
      {"config.MODEL.TRUNK.VISION_TRANSFORMERS.PATCH_SIZE=8",
       "command line:2: config.MODEL.TRUNK.VISION_TRANSFORMERS.PATCH_SIZE is '8', which has no effect: "
       "config.MODEL.TRUNK.NAME is 'resnet'"},
      {"config.METERS.accuracy_list_meter.topk_values=[2]", "config.METERS.names has no accuracy_list_meter"},
      {"config.OPTIMIZER.layer_wise_lr_decay.decay=0.5", "config.OPTIMIZER.param_group_constructor is 'default'"},
      {"config.OPTIMIZER.param_schedulers.lr.power=3", "config.OPTIMIZER.param_schedulers.lr.name is '"},
      {"config.HOOKS.EVAL.KNN_K=3", "config.HOOKS.EVAL.ONLINE_EVALUATION is 'false'"},
  };
  for (const auto& [token, expected] : cases) {
    EXPECT_THAT(WarningsOf({token}), ElementsAre(HasSubstr(expected))) << token;
  }
}

TEST(SettingsWithoutEffectTest, WhatCountsAndWhatIsTheDefaultAnyway_IsQuiet) {
  EXPECT_THAT(WarningsOf({"config.OPTIMIZER.name=adamw", "config.OPTIMIZER.betas=[0.5, 0.6]",
                          "config.MODEL.AMP_PARAMS.USE_AMP=True", "config.MODEL.AMP_PARAMS.AMP_DTYPE=bfloat16",
                          "config.HOOKS.EMA_MODEL.SAVE_EMA_MODEL=True", "config.HOOKS.EMA_MODEL.DECAY=0.9",
                          "config.LOSS.moco_loss.temperature=0.20", "config.OPTIMIZER.larc_config.clip=False"}),
              IsEmpty());
}

TEST(SettingsWithoutEffectTest, KeyThatIsTypedTwice_IsNamedWithBothPlaces) {
  EXPECT_THAT(WarningsOf({"config.OPTIMIZER.num_epochs=2", "config.OPTIMIZER.num_epochs=3"}),
              ElementsAre("command line:3: config.OPTIMIZER.num_epochs is '3', which holds; '2' of command line:2 has "
                          "no effect: the key is given twice"));
  EXPECT_THAT(WarningsOf({"config.OPTIMIZER.num_epochs=3", "config.OPTIMIZER.num_epochs=3",
                          "config.OPTIMIZER.larc_config={eps: 1e-8}", "config.OPTIMIZER.larc_config={clip: False}"}),
              IsEmpty())
      << "nothing is lost";
  EXPECT_THAT(WarningsOf({"+config.MY_KEY=1", "config.ALLOW_UNKNOWN_KEYS=True"}), IsEmpty());
  EXPECT_THAT(WarningsOf({"config.OPTIMIZER.larc_config={eps: 1e-8}", "config.OPTIMIZER.larc_config={eps: 1e-7}",
                          "config.OPTIMIZER.use_larc=True"}),
              ElementsAre(HasSubstr("config.OPTIMIZER.larc_config.eps is '1e-7', which holds; '1e-8' of command")));
}

// Methods know how many images and batches there are, and say so in the log.
TEST(SettingsWithoutEffectTest, QueueThatATrainingCannotFillOrNeverUses_IsWarnedOf) {
  const std::string length = "config.LOSS.swav_loss.queue.queue_length";
  const std::string start = "config.LOSS.swav_loss.queue.start_iter";
  const auto logged = [](const std::vector<std::string>& tokens) {
    const CapturedLog log;
    EXPECT_THAT(CheckTokens(tokens).mistakes, IsEmpty());
    return log.warnings;
  };
  EXPECT_THAT(logged({"config=test/swav_tiny", length + "=88"}),
              ElementsAre(HasSubstr("command line:2: " + length + " is 88, more than the 80 images of the training")));
  EXPECT_THAT(logged({"config=test/swav_tiny", length + "=80", start + "=20"}),
              ElementsAre("command line:3: " + start + " is 20, expected less than 20, the batches of the whole " +
                          "training: the queue has no effect"));
  EXPECT_THAT(logged({"config=test/swav_tiny", length + "=80", start + "=19"}), IsEmpty());
  EXPECT_THAT(logged({"config=test/moco_tiny", "config.LOSS.moco_loss.queue_size=800"}),
              ElementsAre(HasSubstr("command line:2: config.LOSS.moco_loss.queue_size is 800, more than the ")));
}

TEST(SettingsWithoutEffectTest, SectionThatAnEngineOfTheCommandReads_IsQuiet) {
  Registries registries;
  ASSERT_OK(RegisterBuiltins(&registries));
  ComposeRequest request = MakeRunRequest(registries);
  request.search_dirs = {"configs", "."};
  for (const auto& [engine, token] :
       {std::pair("full_tune", "config.LOSS.cross_entropy_multiple_output_single_target.label_smoothing=0.1"),
        std::pair("extract_label_predictions", "config.METERS.accuracy_list_meter.topk_values=[2]")}) {
    for (const bool reads : {false, true}) {
      request.tokens = {"config=test/swav_tiny", token};
      if (reads) request.tokens.push_back(std::string("engine_name=[train,") + engine + "]");
      ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Compose(request));
      EXPECT_EQ(SettingsWithoutEffect(composed.root, registries).size(), reads ? 0u : 1u) << token;
    }
  }
}

}  // namespace
}  // namespace ssl
