// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/simclr/simclr_resolver.h"

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
LOSS: {name: simclr_info_nce_loss, multicrop_simclr_info_nce_loss: {num_crops: 2}}
DISTRIBUTED: {NUM_NODES: 2, NUM_PROC_PER_NODE: 4}
DATA:
  TRAIN:
    BATCHSIZE_PER_REPLICA: 16
    COLLATE_FUNCTION: simclr_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 6, num_crops: [2, 4]}
      - {name: ToTensor}
)";

int64_t IntAt(const ConfigNode& config, const std::string& path) { return config.FindPath(path)->AsInt().value(); }

TEST(SimclrResolver, TwoViews_CountTwiceTheImagesOfAllRanks) {
  ConfigNode config = Parsed(kConfig);
  ASSERT_OK(ResolveSimclr(&config));
  EXPECT_EQ(IntAt(config, "LOSS.simclr_info_nce_loss.buffer_params.world_size"), 8);
  EXPECT_EQ(IntAt(config, "LOSS.simclr_info_nce_loss.buffer_params.effective_batch_size"), 256);
  EXPECT_EQ(config.FindPath("DATA.TRAIN.COLLATE_FUNCTION")->text(), "simclr_collator");
}

TEST(SimclrResolver, Crops_CountImagesAndTakeNumberAndCollator) {
  ConfigNode config = Parsed(kConfig);
  config.SetPath("LOSS.name", ConfigNode::FromString("multicrop_simclr_info_nce_loss"));
  ASSERT_OK(ResolveSimclr(&config));
  EXPECT_EQ(IntAt(config, "LOSS.multicrop_simclr_info_nce_loss.buffer_params.world_size"), 8);
  EXPECT_EQ(IntAt(config, "LOSS.multicrop_simclr_info_nce_loss.buffer_params.effective_batch_size"), 128);
  EXPECT_EQ(IntAt(config, "LOSS.multicrop_simclr_info_nce_loss.num_crops"), 6);
  EXPECT_EQ(config.FindPath("DATA.TRAIN.COLLATE_FUNCTION")->text(), "multicrop_collator");
}

TEST(SimclrResolver, CropsOfNoTransform_StayAsWritten) {
  ConfigNode config = Parsed(kConfig);
  config.SetPath("LOSS.name", ConfigNode::FromString("multicrop_simclr_info_nce_loss"));
  config.SetPath("DATA.TRAIN.TRANSFORMS", ConfigNode::List());
  ASSERT_OK(ResolveSimclr(&config));
  EXPECT_EQ(IntAt(config, "LOSS.multicrop_simclr_info_nce_loss.num_crops"), 2);
}

TEST(SimclrResolver, WithoutDistributed_ThereIsOneRank) {
  ConfigNode config = Parsed("{LOSS: {name: simclr_info_nce_loss}, DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 10}}}");
  ASSERT_OK(ResolveSimclr(&config));
  EXPECT_EQ(IntAt(config, "LOSS.simclr_info_nce_loss.buffer_params.world_size"), 1);
  EXPECT_EQ(IntAt(config, "LOSS.simclr_info_nce_loss.buffer_params.effective_batch_size"), 20);
}

TEST(SimclrResolver, AnotherLoss_IsLeftAlone) {
  for (const char* text : {"LOSS: {name: moco_loss}", "DATA: {TRAIN: {}}"}) {
    ConfigNode config = Parsed(text);
    const ConfigNode before = config;
    ASSERT_OK(ResolveSimclr(&config));
    EXPECT_EQ(config, before);
  }
}

TEST(SimclrResolver, CountsThatAreNone_AreRefusedWithTheLine) {
  constexpr auto invalid = absl::StatusCode::kInvalidArgument;
  ConfigNode none = Parsed("LOSS: {name: simclr_info_nce_loss}\nDISTRIBUTED: {NUM_NODES: 0}\n");
  EXPECT_THAT(
      ResolveSimclr(&none),
      StatusIs(invalid, HasSubstr("f.yaml:2: config.DISTRIBUTED.NUM_NODES is '0', expected an integer from 1")));
  ConfigNode text = Parsed("LOSS: {name: simclr_info_nce_loss}\nDATA: {TRAIN: {BATCHSIZE_PER_REPLICA: many}}\n");
  EXPECT_THAT(ResolveSimclr(&text), StatusIs(invalid, HasSubstr("f.yaml:2: 'many'")));
}

}  // namespace
}  // namespace ssl
