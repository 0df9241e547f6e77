// SPDX-License-Identifier: Apache-2.0
//
// Names and composition; whole runs are in tests/integration.
#include "ssl/tools/command.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(FillRegistries(line_, &registries_)); }

  std::string Listed(const std::string& kind) { return ListNames(kind, registries_).value_or("error"); }

  CommandLine line_;
  Registries registries_;
};

// Literal lists: a component that is dropped or forgotten is noticed.
TEST_F(CommandTest, RegisteredNamesAreTheseAndNoOthers) {
  EXPECT_EQ(Listed("data_sources"), "synthetic\ntorchvision_dataset\n");
  EXPECT_EQ(Listed("engines"), "knn\ntrain\n");
  EXPECT_EQ(Listed("heads"), "mlp\nswav_head\n");
  EXPECT_EQ(Listed("hooks"), "check_nan\ncheckpoint\nfreeze_parameters\ntrain_logger\n");
  EXPECT_EQ(Listed("methods"), "swav_loss\n");
  EXPECT_EQ(Listed("models"), "multi_input_output_model\n");
  EXPECT_EQ(Listed("optimizers"), "adamw\nsgd\n");
  EXPECT_EQ(Listed("schedules"), "composite\nconstant\ncosine\nlinear\nmultistep\nstep\n");
  EXPECT_EQ(Listed("sinks"), "jsonl\ntensorboard\n");
  EXPECT_EQ(Listed("transforms"),
            "ColorJitter\nImgPilToMultiCrop\nNormalize\nRandomHorizontalFlip\nRandomResizedCrop\nToTensor\n");
  EXPECT_EQ(Listed("trunks"), "resnet\n");
}

TEST_F(CommandTest, UnknownKind_NamesTheNearest) {
  EXPECT_THAT(ListNames("hook", registries_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'hooks'?")));
}

TEST_F(CommandTest, ComposeRoot_HasDefaultsAndOverrides) {
  line_.tokens = {"config.SEED_VALUE=7", "engine_name=[train,knn]",
                  "config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [8, 8], num_clusters: [4]}]]"};
  ASSERT_OK_AND_ASSIGN(const ConfigNode root, ComposeRoot(line_, registries_));
  EXPECT_EQ(root.FindPath("config.SEED_VALUE")->text(), "7");
  EXPECT_EQ(root.FindPath("config.OPTIMIZER.momentum")->text(), "0.9");
  EXPECT_EQ(root.Find("engine_name")->items().size(), 2u);
}

TEST_F(CommandTest, ComposeRoot_RefusesAnUnknownKey) {
  line_.tokens = {"config.SEED_VALU=7"};
  EXPECT_THAT(ComposeRoot(line_, registries_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean 'config.SEED_VALUE'?")));
}

}  // namespace
}  // namespace ssl
