// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weight_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

TEST(WeightNames, WrappersOfVisslAreDropped) {
  EXPECT_THAT(ToModelNames({"trunk._feature_blocks.conv1.weight", "trunk.base_model._feature_blocks.bn1.bias",
                            "heads.0.clf.0.weight"}),
              ElementsAre("trunk.conv1.weight", "trunk.bn1.bias", "heads.0.clf.0.weight"));
}

TEST(WeightNames, FilesOfATrunkAloneGetItsPrefix) {
  EXPECT_THAT(ToModelNames({"conv1.weight", "_feature_blocks.layer1.0.bn1.bias", "fc.bias"}),
              ElementsAre("trunk.conv1.weight", "trunk.layer1.0.bn1.bias", "trunk.fc.bias"));
  // One name of a model is enough: then the others are not a trunk's.
  EXPECT_THAT(ToModelNames({"trunk.conv1.weight", "queue"}), ElementsAre("trunk.conv1.weight", "queue"));
}

TEST(WeightNames, HuggingFaceResNetsHaveTorchvisionsNames) {
  EXPECT_THAT(ToModelNames({"resnet.embedder.embedder.convolution.weight",
                            "resnet.embedder.embedder.normalization.running_mean",
                            "resnet.encoder.stages.0.layers.2.layer.1.convolution.weight",
                            "resnet.encoder.stages.3.layers.0.layer.0.normalization.bias",
                            "resnet.encoder.stages.1.layers.0.shortcut.convolution.weight",
                            "encoder.stages.1.layers.0.shortcut.normalization.weight", "classifier.1.weight"}),
              ElementsAre("trunk.conv1.weight", "trunk.bn1.running_mean", "trunk.layer1.2.conv2.weight",
                          "trunk.layer4.0.bn1.bias", "trunk.layer2.0.downsample.0.weight",
                          "trunk.layer2.0.downsample.1.weight", "trunk.classifier.1.weight"));
}

TEST(WeightNames, LooksLikeHuggingFaceButIsNot) {
  for (const char* name :
       {"convolution", "normalization.weight", "encoder.stages.x.layers.0.layer.0.convolution.weight",
        "encoder.stages.0.layers.0.layer.y.convolution.weight", "encoder.stages.0.convolution.weight",
        "encoder.stages.0.layers.0.other.0.convolution.weight"}) {
    EXPECT_EQ(FromHuggingFace(name), name);
  }
}

}  // namespace
}  // namespace ssl
