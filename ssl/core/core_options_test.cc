// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/core_options.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<TaskOptions> Read(const std::string& yaml) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> config = ParseYaml(yaml, "run.yaml", &warnings);
  EXPECT_OK(config);
  return config.ok() ? ReadTaskOptions(*config) : config.status();
}

TEST(TaskOptionsTest, EmptyConfiguration_HasDefaults) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options, Read("{}"));
  EXPECT_EQ(options.run.seed, 0);
  EXPECT_EQ(options.run.log_frequency, 10);
  EXPECT_FALSE(options.run.test_only);
  EXPECT_TRUE(options.run.test_model);
  EXPECT_EQ(options.run.test_every_num_epoch, 1);
  EXPECT_EQ(options.checkpoint.directory, "");
  EXPECT_TRUE(options.checkpoint.auto_resume);
  EXPECT_EQ(options.checkpoint.epoch_frequency, 1);
  EXPECT_EQ(options.checkpoint.iteration_frequency, -1);
  EXPECT_EQ(options.loss.name, "CrossEntropyLoss");
  EXPECT_EQ(options.trainer.train_step_name, "standard_train_step");
  EXPECT_EQ(options.model_name, "multi_input_output_model");
  EXPECT_EQ(options.optimizer_name, "sgd");
  EXPECT_EQ(options.parameter_grouping, "default");
  EXPECT_EQ(options.num_epochs, 90);
  EXPECT_EQ(options.batch_size, 256);
  EXPECT_EQ(options.batches_per_update, 1);
  EXPECT_THAT(options.meters, IsEmpty());
  EXPECT_TRUE(options.meters_in_training);
  EXPECT_EQ(options.precision.autocast, Autocast::kOff);
}

TEST(TaskOptionsTest, EverySection_IsRead) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options, Read(R"(
SEED_VALUE: 5
LOG_FREQUENCY: 7
TEST_ONLY: True
TEST_MODEL: False
TEST_EVERY_NUM_EPOCH: 3
CHECKPOINT: {DIR: runs/a, AUTO_RESUME: False, CHECKPOINT_FREQUENCY: -1, CHECKPOINT_ITER_FREQUENCY: 50, KEEP_LAST: 4}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 16}}
LOSS: {name: swav_loss}
METERS: {names: [accuracy_list_meter], enable_training_meter: False}
MODEL: {BASE_MODEL_NAME: other_model, AMP_PARAMS: {USE_AMP: True}}
OPTIMIZER: {name: adamw, param_group_constructor: dino, num_epochs: 3, grad_acc_steps: 2}
TRAINER: {TRAIN_STEP_NAME: my_step}
)"));
  EXPECT_EQ(options.run.seed, 5);
  EXPECT_EQ(options.run.log_frequency, 7);
  EXPECT_TRUE(options.run.test_only);
  EXPECT_FALSE(options.run.test_model);
  EXPECT_EQ(options.run.test_every_num_epoch, 3);
  EXPECT_EQ(options.checkpoint.directory, "runs/a");
  EXPECT_FALSE(options.checkpoint.auto_resume);
  EXPECT_EQ(options.checkpoint.epoch_frequency, -1);
  EXPECT_EQ(options.checkpoint.iteration_frequency, 50);
  EXPECT_EQ(options.checkpoint.keep_last, 4);
  EXPECT_EQ(options.batch_size, 16);
  EXPECT_EQ(options.loss.name, "swav_loss");
  EXPECT_THAT(options.meters, ElementsAre("accuracy_list_meter"));
  EXPECT_FALSE(options.meters_in_training);
  EXPECT_EQ(options.model_name, "other_model");
  EXPECT_EQ(options.precision.autocast, Autocast::kBFloat16);
  EXPECT_EQ(options.optimizer_name, "adamw");
  EXPECT_EQ(options.parameter_grouping, "dino");
  EXPECT_EQ(options.num_epochs, 3);
  EXPECT_EQ(options.batches_per_update, 2);
  EXPECT_EQ(options.trainer.train_step_name, "my_step");
}

TEST(TaskOptionsTest, SectionThatIsNull_HasDefaults) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options, Read("OPTIMIZER:\nCHECKPOINT:\n"));
  EXPECT_EQ(options.num_epochs, 90);
  EXPECT_EQ(options.checkpoint.directory, "");
}

TEST(TaskOptionsTest, KeysOfOtherPackages_AreLeftAlone) {
  EXPECT_OK(Read("OPTIMIZER: {momentum: 0.9}\nMODEL: {TRUNK: {NAME: resnet}}\nLOSS: {swav_loss: {epsilon: 0.05}}"));
}

TEST(TaskOptionsTest, ProblemsOfAllSections_AreReportedAtOnce) {
  const absl::Status status = Read(R"(
SEED_VALUE: many
CHECKPOINT: {KEEP_LAST: -1, CHECKPOINT_FREQUENCY: -2}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 0}}
METERS: {enable_training_meter: perhaps}
OPTIMIZER: {num_epochs: 0, grad_acc_steps: 0}
TRAINER: {TASK_NAME: another_task}
)")
                                  .status();
  ASSERT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run.yaml:2: config.SEED_VALUE is 'many'")));
  for (const char* part :
       {"run.yaml:3: config.CHECKPOINT.KEEP_LAST is '-1'", "run.yaml:3: config.CHECKPOINT.CHECKPOINT_FREQUENCY is '-2'",
        "run.yaml:4: config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is '0'",
        "run.yaml:5: config.METERS.enable_training_meter is 'perhaps'",
        "run.yaml:6: config.OPTIMIZER.num_epochs is '0'", "run.yaml:6: config.OPTIMIZER.grad_acc_steps is '0'",
        "run.yaml:7: config.TRAINER.TASK_NAME is 'another_task'"}) {
    EXPECT_THAT(status.message(), HasSubstr(part));
  }
}

// A run lists its phases before it starts.
TEST(TaskOptionsTest, MoreEpochsThanAnyoneTrains_AreRefusedWithTheMost) {
  EXPECT_OK(Read("OPTIMIZER: {num_epochs: 100000}"));
  EXPECT_THAT(Read("OPTIMIZER: {num_epochs: 99999999999999}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:1: config.OPTIMIZER.num_epochs is '99999999999999'"),
                             HasSubstr("between 1 and 100000 (epochs)"))));
}

// Whether it is there is another question (run_device.h): a configuration is looked at on machines that lack it.
TEST(TaskOptionsTest, Device_IsOneOfTheKnownNames) {
  EXPECT_OK(Read("MACHINE: {DEVICE: gpu}"));
  EXPECT_THAT(Read("MACHINE: {DEVICE: tpu}"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'tpu'")));
}

TEST(TaskOptionsTest, GradientCompression_IsNoneUnlessNamed) {
  ASSERT_OK_AND_ASSIGN(const TaskOptions options, Read("{}"));
  EXPECT_EQ(options.replicas.gradient_compression, "none");
  for (const char* name : {"none", "bf16", "fp16"}) {
    ASSERT_OK_AND_ASSIGN(const TaskOptions named,
                         Read(absl::StrCat("DISTRIBUTED: {GRADIENT_COMPRESSION: ", name, "}")));
    EXPECT_EQ(named.replicas.gradient_compression, name);
  }
  EXPECT_THAT(Read("DISTRIBUTED: {GRADIENT_COMPRESSION: int8}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("config.DISTRIBUTED.GRADIENT_COMPRESSION is 'int8'"), HasSubstr("bf16"))));
}

TEST(TaskOptionsTest, GradientCompressionOfSharedOutParameters_IsRefused) {
  constexpr char kTask[] = "TRAINER: {TASK_NAME: self_supervision_fsdp_task}\n";
  EXPECT_OK(Read(absl::StrCat(kTask, "DISTRIBUTED: {GRADIENT_COMPRESSION: none}")));
  EXPECT_THAT(Read(absl::StrCat(kTask, "DISTRIBUTED: {GRADIENT_COMPRESSION: bf16}")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:2: config.DISTRIBUTED.GRADIENT_COMPRESSION is bf16"),
                             HasSubstr("config.TRAINER.TASK_NAME is self_supervision_fsdp_task"))));
}

TEST(TaskOptionsTest, LossScaleThatIsNoNumber_IsRefusedWithItsPlace) {
  EXPECT_THAT(Read("MODEL:\n  AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16, AMP_ARGS: {loss_scale: high}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:2: config.MODEL.AMP_PARAMS.AMP_ARGS.loss_scale is 'high'")));
}

}  // namespace
}  // namespace ssl
