// SPDX-License-Identifier: Apache-2.0
//
// Messages that people could not act on, kept as they have to be: key, place, value and what was expected, in the words
// of whoever wrote the setting, and advice that works.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/check/message_places.h"
#include "ssl/check/testing/check_tokens.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

struct Message {
  std::vector<std::string> tokens;  // on top of `base`
  std::string begins;
  std::string base = "test/swav_tiny";
};

const std::vector<Message>& Messages() {
  static const auto* const messages = new std::vector<Message>{
      {{"config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 16], num_clusters: [0]}]]"},
       "command line:2: config.MODEL.HEAD.PARAMS: swav_head.num_clusters.0 is '0', expected an integer of at least 1"},
      {{"config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 16], num_clusters: 8}]]"},
       "command line:2: config.MODEL.HEAD.PARAMS: swav_head.num_clusters is '8', expected a list, as [8]"},
      {{"config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 16], num_cluster: [8]}]]"},
       "command line:2: config.MODEL.HEAD.PARAMS: unknown key 'swav_head.num_cluster'; did you mean 'num_clusters'?"},
      {{"config.MODEL.HEAD.PARAMS=[[mlp, {dmis: [32, 32]}], [swav_head, {dims: [32, 16], num_clusters: [8]}]]"},
       "command line:2: mlp: unknown key 'config.MODEL.HEAD.PARAMS.0.1.dmis'; did you mean 'dims'?"},
      {{"config.DATA.TRAIN.TRANSFORMS.4.sdt=[0.2]"},
       "command line:2: Normalize: unknown key 'config.DATA.TRAIN.TRANSFORMS.4.sdt'; did you mean 'std'?"},
      {{"config.DATA.TEST.TRANSFORMS=[{name: Normalize, mean: [0], std: [1]}, {name: Normalize, sdt: [1]}]"},
       "command line:2: Normalize: unknown key 'config.DATA.TEST.TRANSFORMS.1.sdt'; did you mean 'std'?"},
      {{"config.DATA.TEST.TRANSFORMS=[{name: Resize, size: 8}, {name: Resize, size: x}]"},
       "command line:2: Resize: config.DATA.TEST.TRANSFORMS.1.size is 'x', expected one or two numbers of pixels"},
      {{"config.DATA.TEST.TRANSFORMS=[{name: Resize, size: 8}, {name: Resize, size: 8.5}]"},
       "command line:2: Resize: config.DATA.TEST.TRANSFORMS.1.size is '8.5', expected one or two numbers of pixels"},
      {{"config.OPTIMIZER.param_schedulers.lr={name: composite, lengths: [0.5, 0.5], schedulers: [{name: linear}, "
        "{name: cosine, strat_value: 0.1}]}"},
       "command line:2: cosine: unknown key 'config.OPTIMIZER.param_schedulers.lr.schedulers.1.strat_value'; did you "
       "mean 'start_value'?"},
      {{"config.MODEL.HEAD.PARAMS=[swav_head, {dims: [32, 16], num_clusters: [8]}]"},
       "command line:2: config.MODEL.HEAD.PARAMS is [swav_head, ...], one head, expected a list of heads, [[swav_head, "
       "{arguments}]]"},
      {{"config.OPTIMIZER.lr=0.1"},
       "command line: unknown key 'config.OPTIMIZER.lr'; did you mean 'config.OPTIMIZER.param_schedulers.lr', a map of "
       "auto_lr_scaling, name, "},
      {{"config.OPTIMIZER.param_schedulers.lr=0.1"},
       "command line:2: config.OPTIMIZER.param_schedulers.lr is '0.1', expected a map of auto_lr_scaling, name, "},
      {{"config.DATA.TRAIN.TRANSFORMS=[{name: ToTensor}]"},
       "command line:2: config.DATA.TRAIN.TRANSFORMS make 1 view of an image, swav_loss (config.LOSS.name) compares 2; "
       "expected ImgReplicatePil with num_times, or ImgPilToMultiCrop with total_num_crops, of 2"},
      {{"config.DATA.TRAIN.IMAGE_CHANNELS=1"},
       "command line:2: config.DATA.TRAIN.IMAGE_CHANNELS is 1, but the trunk takes 3 channels, as "
       "config.MODEL.INPUT_TYPE is rgb; expected 3: grey images are read as three equal channels"},
      {{"config.DATA.TRAIN.BATCHSIZE=8"},
       "command line: unknown key 'config.DATA.TRAIN.BATCHSIZE'; did you mean "
       "'config.DATA.TRAIN.BATCHSIZE_PER_REPLICA'?"},
      {{"config.LOSS.name=swav"},
       "command line:2: config.LOSS.name is 'swav', which is no loss; did you mean 'swav_loss'?; known: "},
      {{"config.hooks=[memory_checkpoint]"},
       "command line:2: config.hooks.0 is 'memory_checkpoint', expected a map, as {type: memory_checkpoint}"},
      {{"config.NEAREST_NEIGHBOR.BASELINES=[raw]", "engine_name=knn"},
       "command line:2: config.NEAREST_NEIGHBOR.BASELINES has 'raw', expected raw_pixels, untrained or auto"},
      {{"config.HOOKS.EVAL.ONLINE_EVALUATION=True", "config.HOOKS.EVAL.FEATURES=res7"},
       "hook 'eval' (OnStart, iteration 0): command line:3: config.HOOKS.EVAL.FEATURES is 'res7', which is no stage of "
       "the trunk"},
      {{"config.LOSS.simclr_info_nce_loss.buffer_params.embedding_dim=8"},
       "command line:2: config.LOSS.simclr_info_nce_loss.buffer_params.embedding_dim is 8, but the last layer of the "
       "heads, ",
       "test/simclr_tiny"},
      {{"config.LOSS.barlow_twins_loss.embedding_dim=8"},
       "command line:2: config.LOSS.barlow_twins_loss.embedding_dim is 8, but the last layer of the heads, ",
       "test/barlow_twins_tiny"},
      {{"config.DATA.TRAIN.TRANSFORMS.0.num_times=3"},
       "command line:2: config.DATA.TRAIN.TRANSFORMS make 3 views of an image, barlow_twins_loss (config.LOSS.name) "
       "compares 2; ",
       "test/barlow_twins_tiny"},
      {{"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=1"},
       "command line:2: config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is 1",
       "test/barlow_twins_tiny"},
      {{"config.LOSS.moco_loss.momentum=1.0"},
       "command line:2: config.LOSS.moco_loss.momentum is 1.0, expected less than 1, such as 0.999",
       "test/moco_tiny"},
  };
  return *messages;
}

TEST(MessagesTest, SayKeyPlaceValueAndWhatIsExpected) {
  for (const Message& message : Messages()) {
    std::vector<std::string> tokens = {absl::StrCat("config=", message.base)};
    tokens.insert(tokens.end(), message.tokens.begin(), message.tokens.end());
    const ConfigReport report = CheckTokens(tokens);
    EXPECT_THAT(report.mistakes, ElementsAre(StartsWith(message.begins))) << absl::StrJoin(message.tokens, " ") << "\n"
                                                                          << FormatReport(report);
  }
}

// What a run says that is begun without a check.
TEST(MessagesTest, OfARunHaveThePlaceOfTheName) {
  Registries registries;
  ASSERT_OK(RegisterBuiltins(&registries));
  ComposeRequest request = MakeRunRequest(registries);
  request.search_dirs = {"configs", "."};
  for (const auto& [token, begins] :
       {std::pair("config.MODEL.TRUNK.NAME=efficientnet",
                  "command line:2: config.MODEL.TRUNK.NAME is 'efficientnet': no trunk is named 'efficientnet'"),
        {"config.LOSS.name=dino_loss",
         "command line:2: config.LOSS.name is 'dino_loss': no loss is named 'dino_loss'"}}) {
    request.tokens = {"config=test/supervised_tiny", token};
    ASSERT_OK_AND_ASSIGN(const ComposedConfig composed, Compose(request));
    const absl::Status status = Session::Create(*composed.root.Find("config"), registries, {}).status();
    EXPECT_THAT(WithPlaces(status, composed.root), StatusIs(status.code(), StartsWith(begins)));
  }
}

TEST(MessagesTest, ANameThatNobodyWroteIsSaidToBeNone) {
  const ConfigReport report = CheckTokens({"config=test/supervised_tiny"});
  ConfigNode root = ConfigNode::Map();
  root.Set("config", report.config);
  root.SetPath("config.LOSS.name", ConfigNode::FromString("CrossEntropyLoss"));
  EXPECT_EQ(WithPlaces(absl::InvalidArgumentError("config.LOSS.name is CrossEntropyLoss, which takes one output, the "
                                                  "model has 2 (config.MODEL.HEAD.PARAMS); expected ..."),
                       root)
                .message(),
            "config.LOSS.name (not set) is CrossEntropyLoss, which takes one output, the model has 2 "
            "(config.MODEL.HEAD.PARAMS); expected ...");
  EXPECT_EQ(WithPlaces(absl::DataLossError("config.LOSS.name"), root).message(), "config.LOSS.name");
}

}  // namespace
}  // namespace ssl
