// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/barlow_twins/barlow_twins.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

class BarlowTwinsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterBarlowTwins(&registries_)); }

  absl::StatusOr<std::unique_ptr<Method>> Make(const std::string& params) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> node = ParseYaml(params, "barlow.yaml", &warnings);
    if (!node.ok()) return node.status();
    const ConfigNode config;
    return registries_.methods.Make("barlow_twins_loss", *node, {config, registries_, *communicator_, 0, ""});
  }

  Registries registries_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(BarlowTwinsTest, OneCall_RegistersTheMethodAndWhatItBuildsOn) {
  EXPECT_TRUE(registries_.methods.Has("barlow_twins_loss"));
  EXPECT_TRUE(registries_.models.Has("multi_input_output_model"));
  EXPECT_TRUE(registries_.heads.Has("mlp"));
  EXPECT_TRUE(registries_.optimizers.Has("lars"));
  EXPECT_OK(RegisterBarlowTwins(&registries_)) << "a second call changes nothing";
}

TEST_F(BarlowTwinsTest, Defaults_AreVissls) {
  const ConfigNode defaults = registries_.options.Defaults();
  const ConfigNode& loss = *defaults.FindPath("LOSS.barlow_twins_loss");
  EXPECT_EQ(loss.Find("lambda_")->text(), "0.0051");
  EXPECT_EQ(loss.Find("scale_loss")->text(), "0.024");
  EXPECT_EQ(loss.Find("embedding_dim")->text(), "8192");
}

TEST_F(BarlowTwinsTest, ValidKeys_MakeTheMethod) {
  EXPECT_OK(Make("{lambda_: 0.01, scale_loss: 1, embedding_dim: 4}"));
}

TEST_F(BarlowTwinsTest, EveryWrongValue_IsReportedWithItsLine) {
  const absl::Status status = Make("lambda_: -1\nscale_loss: 0\nembedding_dim: x\n").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("barlow.yaml:1")));
  EXPECT_THAT(status.message(), HasSubstr("barlow.yaml:2"));
  EXPECT_THAT(status.message(), HasSubstr("barlow.yaml:3: config.LOSS.barlow_twins_loss.embedding_dim is 'x'"));
}

}  // namespace
}  // namespace ssl
