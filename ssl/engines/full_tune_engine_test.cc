// SPDX-License-Identifier: Apache-2.0
//
// Whole runs are in tests/integration; here, the configuration that is derived.
#include "ssl/engines/full_tune_engine.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/data/samplers/sampler_keys.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr char kRun[] = R"(
TEST_MODEL: False
CHECKPOINT: {DIR: runs/swav, KEEP_LAST: 5}
DATA:
  TRAIN:
    DATA_SOURCES: [disk_folder]
    DATA_LIMIT: -1
    DROP_LAST: True
    LABEL_TYPE: sample_index
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS: [{name: ImgPilToMultiCrop}]
  TEST: {TRANSFORMS: [{name: CenterCrop, size: 224}]}
LOSS: {name: swav_loss}
METERS: {names: [mean_ap_list_meter]}
MODEL:
  TRUNK: {NAME: resnet}
  HEAD: {PARAMS: [[swav_head, {dims: [8, 8]}]]}
  FEATURE_EVAL_SETTINGS: {EVAL_MODE_ON: True}
  TEMP_FROZEN_PARAMS_ITER_MAP: [[heads.0.prototypes0.weight, 4]]
  WEIGHTS_INIT: {PARAMS_FILE: start.pth, APPEND_PREFIX: trunk.}
OPTIMIZER: {name: adamw, use_larc: True, num_epochs: 200}
)";

constexpr char kDefaults[] = R"(
METERS: {names: [], enable_training_meter: True, accuracy_list_meter: {num_meters: 1, topk_values: [1]}}
MODEL:
  FEATURE_EVAL_SETTINGS: {EVAL_MODE_ON: False}
  WEIGHTS_INIT: {PARAMS_FILE: "", APPEND_PREFIX: "", SKIP_LAYERS: [num_batches_tracked]}
OPTIMIZER: {name: sgd, use_larc: False, momentum: 0.9, num_epochs: 90}
)";

class FullTuneConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(run_, ParseYaml(kRun, "run.yaml", nullptr));
    ASSERT_OK_AND_ASSIGN(defaults_, ParseYaml(kDefaults, "defaults.yaml", nullptr));
  }

  ConfigNode Tuned() const { return FullTuneConfig(run_, defaults_, options_, task_); }

  // Compares a subtree with YAML text.
  void ExpectAt(const ConfigNode& config, const std::string& path, const std::string& yaml) {
    const ConfigNode* node = config.FindPath(path);
    ASSERT_NE(node, nullptr) << path;
    EXPECT_EQ(*node, ParseYaml(yaml, "expected.yaml", nullptr).value()) << path;
  }

  ConfigNode run_;
  ConfigNode defaults_;
  FullTuneOptions options_;
  FullTuneTask task_ = {"runs/swav/full_tune", "runs/swav", "step 7", 512, 10};
};

TEST_F(FullTuneConfigTest, NewHeadOnTheRunsTrunk) {
  const ConfigNode tuned = Tuned();
  ExpectAt(tuned, "CHECKPOINT",
           "{DIR: runs/swav/full_tune, KEEP_LAST: 5, RESUME_FROM: -1, EVALUATE: '', "
           "ALLOW_CHANGES: [MODEL.WEIGHTS_INIT.PARAMS_FILE]}");
  ExpectAt(tuned, "FULL_TUNE.initial_weights", "step 7");
  ExpectAt(tuned, "MODEL.TRUNK", "{NAME: resnet}");
  ExpectAt(tuned, "MODEL.HEAD.PARAMS", "[[mlp, {dims: [512, 10]}]]");
  ExpectAt(tuned, "MODEL.FEATURE_EVAL_SETTINGS", "{EVAL_MODE_ON: False}");
  ExpectAt(tuned, "MODEL.TEMP_FROZEN_PARAMS_ITER_MAP", "[]");
  ExpectAt(tuned, "MODEL.WEIGHTS_INIT",
           "{PARAMS_FILE: runs/swav, APPEND_PREFIX: '', SKIP_LAYERS: [num_batches_tracked, heads.]}");
}

TEST_F(FullTuneConfigTest, WithoutACheckpoint_TheRunsFileIsRead) {
  task_.params_file = "";
  ExpectAt(Tuned(), "MODEL.WEIGHTS_INIT",
           "{PARAMS_FILE: start.pth, APPEND_PREFIX: trunk., SKIP_LAYERS: [num_batches_tracked, heads.]}");
}

TEST_F(FullTuneConfigTest, SupervisedTrainingWithTests) {
  options_.num_epochs = 7;
  options_.learning_rate = 0.03;
  options_.weight_decay = 0.001;
  const ConfigNode tuned = Tuned();
  ExpectAt(tuned, "TEST_MODEL", "true");
  ExpectAt(tuned, "LOSS.name", "cross_entropy_multiple_output_single_target");
  ExpectAt(tuned, "METERS.names", "[accuracy_list_meter]");
  ExpectAt(tuned, "METERS.accuracy_list_meter", "{num_meters: 1, topk_values: [1, 5]}");
  ExpectAt(tuned, "OPTIMIZER.name", "sgd");
  ExpectAt(tuned, "OPTIMIZER.use_larc", "False");
  ExpectAt(tuned, "OPTIMIZER.num_epochs", "7");
  ExpectAt(tuned, "OPTIMIZER.weight_decay", "0.001");
  ExpectAt(tuned, "OPTIMIZER.param_schedulers.lr.start_value", "0.03");
}

TEST_F(FullTuneConfigTest, FewClasses_LimitTheMeter) {
  task_.num_classes = 3;
  ExpectAt(Tuned(), "METERS.accuracy_list_meter.topk_values", "[1, 3]");
  task_.num_classes = 1;
  ExpectAt(Tuned(), "METERS.accuracy_list_meter.topk_values", "[1]");
}

TEST_F(FullTuneConfigTest, SingleViewsWithLabels) {
  options_.batch_size = 32;
  ExpectAt(Tuned(), "DATA.TRAIN",
           "{DATA_SOURCES: [disk_folder], DATA_LIMIT: -1, DROP_LAST: false, LABEL_TYPE: standard, "
           "COLLATE_FUNCTION: default_collate, TRANSFORMS: [{name: CenterCrop, size: 224}], "
           "BATCHSIZE_PER_REPLICA: 32}");
}

TEST_F(FullTuneConfigTest, OwnTransforms_AndFewLabels) {
  ASSERT_OK_AND_ASSIGN(options_.transforms, ParseYaml("[{name: RandomCrop}]", "options.yaml", nullptr));
  options_.data_limit = 100;
  const ConfigNode tuned = Tuned();
  ExpectAt(tuned, "DATA.TRAIN.TRANSFORMS", "[{name: RandomCrop}]");
  ExpectAt(tuned, "DATA.TRAIN.DATA_LIMIT", "100");
  ExpectAt(tuned, "DATA.TRAIN.BATCHSIZE_PER_REPLICA", "100");
  ExpectAt(tuned, "DATA.TRAIN.DATA_LIMIT_SAMPLING.IS_BALANCED", "true");
  ExpectAt(tuned, "DATA.TEST.TRANSFORMS", "[{name: CenterCrop, size: 224}]");
}

TEST_F(FullTuneConfigTest, Batch_IsNoLargerThanTheData) {
  task_.samples_per_rank = 30;
  ExpectAt(Tuned(), "DATA.TRAIN.BATCHSIZE_PER_REPLICA", "30");
  options_.batch_size = 16;
  ExpectAt(Tuned(), "DATA.TRAIN.BATCHSIZE_PER_REPLICA", "16");
}

TEST_F(FullTuneConfigTest, HooksOfThePretraining_AreNotInherited) {
  constexpr struct {
    const char* key;
    const char* of_run;
    const char* of_tuning;
  } kSettings[] = {{"HOOKS.EARLY_STOP.METRIC", "Loss/train", "''"},
                   {"HOOKS.BEST_CHECKPOINT.METRICS", "[Evaluation/knn_top_1]", "[]"},
                   {"HOOKS.EVAL.ONLINE_EVALUATION", "True", "False"},
                   {"HOOKS.COLLAPSE_MONITOR.MONITOR_COLLAPSE", "True", "False"},
                   {"HOOKS.EMA_MODEL.SAVE_EMA_MODEL", "True", "False"},
                   {"MODEL.GRAD_CLIP.USE_GRAD_CLIP", "True", "False"},
                   {"PROFILING.STOP_TRAINING_AFTER_PROFILING", "True", "False"}};
  for (const auto& setting : kSettings) {
    defaults_.SetPath(setting.key, ParseYaml(setting.of_tuning, "defaults.yaml", nullptr).value());
    run_.SetPath(setting.key, ParseYaml(setting.of_run, "run.yaml", nullptr).value());
  }
  run_.Set("hooks", ParseYaml("[{type: early_stop, kwargs: {METRIC: x}}, {type: memory_checkpoint}, "
                              "{type: BestCheckpointer}, {type: grad_clipper}, {type: feature_vis}]",
                              "run.yaml", nullptr)
                        .value());
  const ConfigNode tuned = Tuned();
  for (const auto& setting : kSettings) ExpectAt(tuned, setting.key, setting.of_tuning);
  ExpectAt(tuned, "hooks", "[{type: memory_checkpoint}]");
}

TEST_F(FullTuneConfigTest, EpochsAndTests_AreWholeAndOfEach) {
  constexpr const char* kKeys[] = {"DATA.TRAIN.MINI_EPOCHS", "DATA.TRAIN.MINI_EPOCH_GROUPS", "TEST_START",
                                   "TEST_ANCHOR"};
  for (const char* key : kKeys) {
    defaults_.SetPath(key, ConfigNode::FromInt(1));
    run_.SetPath(key, ConfigNode::FromInt(4));
  }
  const ConfigNode tuned = Tuned();
  for (const char* key : kKeys) ExpectAt(tuned, key, "1");
}

TEST_F(FullTuneConfigTest, SamplersOfThePretraining_AreNotInherited) {
  std::vector<std::string> keys = SamplerKeys();
  keys.push_back("ENABLE_QUEUE_DATASET");  // another image under a broken one's label
  for (const std::string& key : keys) {
    defaults_.SetPath("DATA.TRAIN." + key, ConfigNode::FromString("off"));
    run_.SetPath("DATA.TRAIN." + key, ConfigNode::FromString("on"));
  }
  const ConfigNode tuned = Tuned();
  for (const std::string& key : keys) ExpectAt(tuned, "DATA.TRAIN." + key, "off");
}

// The collator of both phases is default_collate, which has no parameters and one input.
TEST_F(FullTuneConfigTest, WhatBelongsToACollator_GoesWithIt) {
  for (const std::string split : {"DATA.TRAIN.", "DATA.TEST."}) {
    defaults_.SetPath(split + "COLLATE_FUNCTION_PARAMS", ConfigNode::Map());
    run_.SetPath(split + "COLLATE_FUNCTION_PARAMS.mixup_alpha", ConfigNode::FromDouble(1.0));
    for (const char* key : {"INPUT_KEY_NAMES", "TARGET_KEY_NAMES"}) {
      defaults_.SetPath(split + key, ConfigNode::FromStrings({"data"}));
      run_.SetPath(split + key, ConfigNode::FromStrings({"patches", "images"}));
    }
  }
  const ConfigNode tuned = Tuned();
  for (const std::string split : {"DATA.TRAIN.", "DATA.TEST."}) {
    ExpectAt(tuned, split + "COLLATE_FUNCTION", "default_collate");
    ExpectAt(tuned, split + "COLLATE_FUNCTION_PARAMS", "{}");
    ExpectAt(tuned, split + "INPUT_KEY_NAMES", "[data]");
    ExpectAt(tuned, split + "TARGET_KEY_NAMES", "[data]");
  }
}

}  // namespace
}  // namespace ssl
