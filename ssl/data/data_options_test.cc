// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/data_options.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The tree under "config", from a file "run.yaml".
ConfigNode Parse(const std::string& text) { return ParseYaml(text, "run.yaml", nullptr).value(); }

absl::StatusOr<DataSplitOptions> ReadTrain(const ConfigNode& config) {
  return ReadDataSplit(*config.FindPath("DATA.TRAIN"), config);
}

TEST(DataSplitOptions, EmptySplit_HasTheDefaultsOfVissl) {
  ASSERT_OK_AND_ASSIGN(const DataSplitOptions options, ReadTrain(Parse("DATA: {TRAIN: {}}")));

  EXPECT_EQ(options.base_dataset, "generic_ssl");
  EXPECT_TRUE(options.data_sources.empty());
  EXPECT_EQ(options.batch_size_per_replica, 256);
  EXPECT_EQ(options.collate_function, "default_collate");
  EXPECT_FALSE(options.drop_last);
  EXPECT_EQ(options.data_limit, -1);
  EXPECT_EQ(options.label_type, "standard");
  EXPECT_EQ(options.image_channels, 3);
}

TEST(DataSplitOptions, KeysOfVissl_AreRead) {
  ASSERT_OK_AND_ASSIGN(const DataSplitOptions options, ReadTrain(Parse(R"(
DATA:
  TRAIN:
    DATA_SOURCES: [synthetic]
    LABEL_SOURCES: [synthetic]
    BATCHSIZE_PER_REPLICA: 32
    LABEL_TYPE: sample_index
    COLLATE_FUNCTION: multicrop_collator
    DROP_LAST: True
    USE_DEBUGGING_SAMPLER: True
    COLLATE_FUNCTION_PARAMS: {create_multidimensional_tensor: False}
    DATA_LIMIT: 500
    DATA_LIMIT_SAMPLING: {SEED: 3}
    TRANSFORMS:
      - name: ToTensor
    UNKNOWN_TO_US: 1
)")));

  EXPECT_EQ(options.data_sources, std::vector<std::string>{"synthetic"});
  EXPECT_EQ(options.batch_size_per_replica, 32);
  EXPECT_EQ(options.label_type, "sample_index");
  EXPECT_EQ(options.collate_function, "multicrop_collator");
  EXPECT_TRUE(options.drop_last);
  EXPECT_EQ(options.data_limit, 500);
  EXPECT_EQ(options.data_limit_sampling.seed, 3);
  EXPECT_EQ(options.transforms.items().size(), 1u);
}

TEST(DataSplitOptions, WrongValue_NamesFileLineKeyAndValue) {
  EXPECT_THAT(ReadTrain(Parse("DATA:\n  TRAIN:\n    BATCHSIZE_PER_REPLICA: zero\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.BATCHSIZE_PER_REPLICA"), HasSubstr("zero"))));
}

TEST(DataSplitOptions, ContradictingSettings_AreRefused) {
  EXPECT_THAT(ReadTrain(Parse("DATA:\n  TRAIN:\n    USE_DEBUGGING_SAMPLER: True\n"
                              "    USE_STATEFUL_DISTRIBUTED_SAMPLER: True\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.USE_DEBUGGING_SAMPLER"),
                             HasSubstr("run.yaml:4: config.DATA.TRAIN.USE_STATEFUL_DISTRIBUTED_SAMPLER"),
                             HasSubstr("are True, expected one of them"))));
  for (const int channels : {0, 2, 4}) {
    EXPECT_THAT(ReadTrain(Parse(absl::StrCat("DATA:\n  TRAIN:\n    IMAGE_CHANNELS: ", channels, "\n"))),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("IMAGE_CHANNELS is ", channels, ", expected 1 or 3"))));
  }
}

TEST(DataSplitOptions, OneReplacementForBrokenImages) {
  EXPECT_THAT(ReadTrain(Parse("DATA:\n  TRAIN:\n    ENABLE_QUEUE_DATASET: True\n    BROKEN_IMAGES: skip\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.ENABLE_QUEUE_DATASET is True"),
                             HasSubstr("run.yaml:4: config.DATA.TRAIN.BROKEN_IMAGES is skip, expected one of them"))));
  EXPECT_OK(ReadTrain(Parse("DATA:\n  TRAIN:\n    ENABLE_QUEUE_DATASET: True\n")));
}

TEST(DataSplitOptions, KeptImagesAreWhole) {
  EXPECT_THAT(ReadTrain(Parse("DATA:\n  TRAIN:\n    CACHE: decoded\n    DECODE: fast\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("run.yaml:3: config.DATA.TRAIN.CACHE is decoded"),
                             HasSubstr("run.yaml:4: config.DATA.TRAIN.DECODE is fast, expected exact"))));
  EXPECT_OK(ReadTrain(Parse("DATA:\n  TRAIN:\n    CACHE: raw\n    DECODE: fast\n")));
}

TEST(SplitKey, NamesTheSplitAndThePlace) {
  const ConfigNode config = Parse("DATA:\n  TRAIN: {}\n  TEST:\n    DATA_LIMIT: 5\n");

  EXPECT_EQ(SplitKey(*config.FindPath("DATA.TEST"), config, "DATA_LIMIT"), "run.yaml:4: config.DATA.TEST.DATA_LIMIT");
  EXPECT_EQ(SplitKey(*config.FindPath("DATA.TRAIN"), config, "DATA_LIMIT"), "config.DATA.TRAIN.DATA_LIMIT");
  const ConfigNode elsewhere = *config.FindPath("DATA.TEST");
  EXPECT_EQ(SplitKey(elsewhere, config, "DATA_PATHS"), "config.DATA.<split>.DATA_PATHS");
}

TEST(DataSplitOptions, AugmentOn_NeedsADeviceAndColours) {
  const auto check = [](const char* text) {
    const ConfigNode config = Parse(text);
    return CheckAugmentOn(*ReadTrain(config), *config.FindPath("DATA.TRAIN"), config);
  };
  EXPECT_EQ(ReadTrain(Parse("DATA: {TRAIN: {}}"))->augment_on, "host");
  EXPECT_OK(check("DATA: {TRAIN: {}}"));
  EXPECT_OK(check("DATA: {TRAIN: {AUGMENT_ON: device}}\nMACHINE: {DEVICE: gpu}"));
  EXPECT_THAT(check("DATA: {TRAIN: {AUGMENT_ON: device}}\nMACHINE: {DEVICE: cpu}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:1: config.DATA.TRAIN.AUGMENT_ON is device and run.yaml:2: "
                                 "config.MACHINE.DEVICE is cpu, expected gpu, or host")));
  EXPECT_THAT(check("DATA: {TRAIN: {AUGMENT_ON: device}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.MACHINE.DEVICE is cpu")));
  EXPECT_THAT(check("DATA: {TRAIN: {AUGMENT_ON: device, IMAGE_CHANNELS: 1}}\nMACHINE: {DEVICE: gpu}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("IMAGE_CHANNELS is 1, expected 3")));
}

}  // namespace
}  // namespace ssl
