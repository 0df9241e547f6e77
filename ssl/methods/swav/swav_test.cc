// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

class SwavTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterSwav(&registries_)); }

  absl::StatusOr<std::unique_ptr<Method>> Make(const std::string& params) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> node = ParseYaml(params, "swav.yaml", &warnings);
    if (!node.ok()) return node.status();
    const ConfigNode config;
    return registries_.methods.Make("swav_loss", *node, {config, registries_, *communicator_, 0, ""});
  }

  Registries registries_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(SwavTest, OneCall_RegistersTheMethodAndWhatItBuildsOn) {
  EXPECT_TRUE(registries_.methods.Has("swav_loss"));
  EXPECT_TRUE(registries_.models.Has("multi_input_output_model"));
  EXPECT_TRUE(registries_.heads.Has("swav_head"));
  EXPECT_TRUE(registries_.trunks.Has("resnet"));
  EXPECT_TRUE(registries_.optimizers.Has("sgd"));
  EXPECT_OK(RegisterSwav(&registries_)) << "a second call changes nothing";
}

TEST_F(SwavTest, Defaults_AreVissls) {
  const ConfigNode defaults = registries_.options.Defaults();
  const ConfigNode& loss = *defaults.FindPath("LOSS.swav_loss");
  EXPECT_EQ(loss.Find("temperature")->text(), "0.1");
  EXPECT_EQ(loss.Find("epsilon")->text(), "0.05");
  EXPECT_EQ(loss.Find("num_iters")->text(), "3");
  EXPECT_EQ(*loss.Find("num_prototypes"), ConfigNode::FromInts({3000}));
  EXPECT_EQ(loss.FindPath("queue.queue_length")->text(), "0");
}

TEST_F(SwavTest, ValidKeys_MakeTheMethod) {
  EXPECT_OK(Make("{temperature: 0.2, queue: {queue_length: 32, start_iter: 5}, output_dir: '.'}"));
}

TEST_F(SwavTest, EveryWrongValue_IsReportedWithItsLine) {
  const absl::Status status = Make("temperature: 0\nnum_iters: x\nqueue: {queue_length: -1}\n").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("swav.yaml:1")));
  EXPECT_THAT(status.message(), HasSubstr("swav.yaml:2: config.LOSS.swav_loss.num_iters is 'x'"));
  EXPECT_THAT(status.message(), HasSubstr("swav.yaml:3"));
}

}  // namespace
}  // namespace ssl
