// SPDX-License-Identifier: Apache-2.0
//
// The key that messages name of a share that is held out.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/dataset_builder.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr char kTrain[] = R"(DATA:
  TRAIN:
    DATA_SOURCES: [grey]
    HOLD_OUT_FRACTION: 0.01
)";

// Twelve images of one pixel and three classes.
absl::StatusOr<std::unique_ptr<Dataset>> MakeGrey(const ConfigNode&, const BuildContext&) {
  ImageArray array;
  array.count = 12;
  array.height = array.width = 1;
  for (int64_t i = 0; i < array.count; ++i) {
    array.pixels.push_back(static_cast<uint8_t>(i));
    array.labels.push_back(i % 3);
  }
  return ArrayDataset::Create(std::move(array), "twelve images");
}

// As an evaluation plans it, one share divides the data of both splits.
TEST(HoldOutKeyTest, OfTheTrainingData_IsTheKeyOfTraining) {
  Registries registries;
  ASSERT_OK(registries.datasets.Register("grey", MakeGrey));
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  ASSERT_OK_AND_ASSIGN(ConfigNode config, ParseYaml(kTrain, "run.yaml", nullptr));
  ConfigNode test = *config.FindPath("DATA.TRAIN");
  test.Set("SPLIT", ConfigNode::FromString("test"));
  config.SetPath("DATA.TEST", std::move(test));
  const auto log_of_test = [&] {
    const CapturedLog log;
    EXPECT_OK(BuildDataset(*config.FindPath("DATA.TEST"), {config, registries, *alone}).status());
    return log.Text();
  };
  EXPECT_THAT(log_of_test(), HasSubstr("run.yaml:4: config.DATA.TRAIN.HOLD_OUT_FRACTION is 0.01: 3 of 12 images"));
  config.SetPath("DATA.TEST.HOLD_OUT_FRACTION", ConfigNode::FromDouble(0.02));
  EXPECT_THAT(log_of_test(), HasSubstr("config.DATA.TEST.HOLD_OUT_FRACTION is 0.02: 3 of 12 images"));
}

}  // namespace
}  // namespace ssl
