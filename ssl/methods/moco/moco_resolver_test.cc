// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco_resolver.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] = R"(
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 16}}
MODEL:
  HEAD:
    PARAMS:
      - [mlp, {dims: [64, 32], use_relu: True}]
      - [mlp, {dims: [32, 16]}]
DATA:
  TRAIN:
    COLLATE_FUNCTION: moco_collator
    TRANSFORMS:
      - {name: ImgReplicatePil, num_times: 2}
      - {name: ToTensor}
)";

// The configuration with another value at `path`.
ConfigNode With(const std::string& path, const std::string& value) {
  ConfigNode config = Parsed(kConfig);
  config.SetPath(path, Parsed(value));
  return config;
}

TEST(MocoResolver, FittingSettings_AreLeftAlone) {
  ConfigNode config = Parsed(kConfig);
  const ConfigNode before = config;
  EXPECT_OK(ResolveMoco(&config));
  EXPECT_EQ(config, before);
}

TEST(MocoResolver, KeyEncoderThatNeverMoves_IsRefused) {
  EXPECT_OK([] {
    ConfigNode config = With("LOSS.moco_loss.momentum", "0.9999");
    return ResolveMoco(&config);
  }());
  ConfigNode config = With("LOSS.moco_loss.momentum", "\n1.0");
  EXPECT_THAT(ResolveMoco(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f.yaml:2: config.LOSS.moco_loss.momentum is 1.0, expected less than 1, such as 0.999: the key "
                       "encoder would stay as it begins"));
}

TEST(MocoResolver, AnotherLoss_IsNotChecked) {
  ConfigNode config = With("LOSS.moco_loss.embedding_dim", "5");
  config.SetPath("LOSS.name", ConfigNode::FromString("swav_loss"));
  EXPECT_OK(ResolveMoco(&config));
}

TEST(MocoResolver, OtherWidthThanTheLastHeads_IsRefusedWithBothPlaces) {
  ConfigNode config = With("LOSS.moco_loss.embedding_dim", "\n\n5");
  EXPECT_THAT(ResolveMoco(&config), StatusIs(absl::StatusCode::kInvalidArgument,
                                             "f.yaml:3: config.LOSS.moco_loss.embedding_dim is 5, expected 16, the "
                                             "width of the last head (f.yaml:7)"));
}

TEST(MocoResolver, LastHeadInAChain_IsFound) {
  ConfigNode config = With("MODEL.HEAD.PARAMS", "[[[mlp, {dims: [64, 9]}], [mlp, {dims: [9, 3]}]]]");
  EXPECT_THAT(ResolveMoco(&config), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 3")));
}

TEST(MocoResolver, HeadsThatDoNotTellTheirWidth_ArePassed) {
  for (const char* heads : {"[]", "[[identity, {}]]", "[[mlp, {dims: []}]]"}) {
    ConfigNode config = With("MODEL.HEAD.PARAMS", heads);
    EXPECT_OK(ResolveMoco(&config)) << heads;
  }
}

TEST(MocoResolver, OtherCollatorWithTwoViews_IsAccepted) {
  ConfigNode config = With("DATA.TRAIN.COLLATE_FUNCTION", "simclr_collator");
  EXPECT_OK(ResolveMoco(&config));
  config.SetPath("DATA.TRAIN.TRANSFORMS", Parsed("[{name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [2]}]"));
  EXPECT_OK(ResolveMoco(&config));
}

TEST(MocoResolver, SourceOfTheHost_IsPassed) {
  ConfigNode config = With("DATA.TRAIN.COLLATE_FUNCTION", "default_collate");
  config.SetPath("DATA.TRAIN.TRANSFORMS", ConfigNode::List());
  EXPECT_OK(ResolveMoco(&config));
}

TEST(MocoResolver, OtherNumberOfViews_IsRefusedWithBothPlaces) {
  ConfigNode config = With("DATA.TRAIN.COLLATE_FUNCTION", "\nmulticrop_collator");
  config.SetPath("DATA.TRAIN.TRANSFORMS", Parsed("[{name: ImgPilToMultiCrop, total_num_crops: 6}]"));
  EXPECT_THAT(ResolveMoco(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f.yaml:1: config.DATA.TRAIN.TRANSFORMS make 6 views and COLLATE_FUNCTION is "
                       "'multicrop_collator' (f.yaml:2), but moco_loss takes 2 views, query and key: expected "
                       "ImgReplicatePil with num_times 2, and moco_collator"));
  config.SetPath("DATA.TRAIN.TRANSFORMS", Parsed("[{name: ToTensor}]"));
  EXPECT_THAT(ResolveMoco(&config), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("make 1 views")));
}

TEST(MocoResolver, QueueThatIsNoMultipleOfTheBatch_IsRefusedWithItsPlace) {
  ConfigNode config = With("LOSS.moco_loss.queue_size", "\n\n12");
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(4));
  EXPECT_OK(ResolveMoco(&config));
  config.SetPath("DISTRIBUTED", Parsed("{NUM_NODES: 1, NUM_PROC_PER_NODE: 2}"));
  EXPECT_THAT(ResolveMoco(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f.yaml:3: config.LOSS.moco_loss.queue_size is 12, expected a multiple of 8, the images of a "
                       "batch over all ranks (config.DATA.TRAIN.BATCHSIZE_PER_REPLICA 4 x 2 ranks)"));
}

TEST(MocoResolver, SharedParameters_AreRefusedWithThePlaceOfTheTask) {
  ConfigNode config = With("TRAINER.TASK_NAME", "\n\nself_supervision_fsdp_task");
  EXPECT_OK(ResolveMoco(&config)) << "one rank shares nothing";
  config.SetPath("DISTRIBUTED", Parsed("{NUM_NODES: 1, NUM_PROC_PER_NODE: 2}"));
  EXPECT_THAT(ResolveMoco(&config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f.yaml:3: config.TRAINER.TASK_NAME is self_supervision_fsdp_task, expected "
                       "self_supervision_task: moco_loss has a second encoder, a whole model on each rank"));
}

TEST(MocoResolver, ValuesThatAreNoNumbers_AreRefusedWithTheLine) {
  ConfigNode config = With("LOSS.moco_loss.embedding_dim", "wide");
  EXPECT_THAT(ResolveMoco(&config), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f.yaml:1: 'wide'")));
}

}  // namespace
}  // namespace ssl
