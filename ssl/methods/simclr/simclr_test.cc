// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/simclr/simclr.h"

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

class SimclrTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterSimclr(&registries_)); }

  absl::StatusOr<std::unique_ptr<Method>> Make(const std::string& loss, const std::string& params) {
    std::vector<std::string> warnings;
    const absl::StatusOr<ConfigNode> node = ParseYaml(params, "simclr.yaml", &warnings);
    if (!node.ok()) return node.status();
    const ConfigNode config;
    return registries_.methods.Make(loss, *node, {config, registries_, *communicator_, 0, ""});
  }

  Registries registries_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(SimclrTest, OneCall_RegistersTheMethodsAndWhatTheyBuildOn) {
  EXPECT_TRUE(registries_.methods.Has("simclr_info_nce_loss"));
  EXPECT_TRUE(registries_.methods.Has("multicrop_simclr_info_nce_loss"));
  EXPECT_TRUE(registries_.models.Has("multi_input_output_model"));
  EXPECT_TRUE(registries_.heads.Has("mlp"));
  EXPECT_TRUE(registries_.optimizers.Has("sgd"));
  EXPECT_OK(RegisterSimclr(&registries_)) << "a second call changes nothing";
}

TEST_F(SimclrTest, Defaults_AreVissls) {
  const ConfigNode defaults = registries_.options.Defaults();
  for (const std::string loss : {"LOSS.simclr_info_nce_loss", "LOSS.multicrop_simclr_info_nce_loss"}) {
    const ConfigNode& keys = *defaults.FindPath(loss);
    EXPECT_EQ(keys.Find("temperature")->text(), "0.1");
    EXPECT_EQ(keys.FindPath("buffer_params.world_size")->text(), "64");
    EXPECT_EQ(keys.FindPath("buffer_params.embedding_dim")->text(), "128");
    EXPECT_EQ(keys.FindPath("buffer_params.effective_batch_size")->text(), "4096");
  }
  EXPECT_EQ(defaults.FindPath("LOSS.multicrop_simclr_info_nce_loss.num_crops")->text(), "2");
  EXPECT_EQ(defaults.FindPath("LOSS.simclr_info_nce_loss.num_crops"), nullptr);
}

TEST_F(SimclrTest, ValidKeys_MakeTheMethods) {
  EXPECT_OK(Make("simclr_info_nce_loss", "{temperature: 0.2, buffer_params: {embedding_dim: 64}}"));
  EXPECT_OK(Make("multicrop_simclr_info_nce_loss", "{temperature: 0.2, num_crops: 6}"));
}

TEST_F(SimclrTest, EveryWrongValue_IsReportedWithItsLine) {
  const absl::Status simclr =
      Make("simclr_info_nce_loss", "temperature: 0\nbuffer_params: {embedding_dim: x}\n").status();
  EXPECT_THAT(simclr, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("simclr.yaml:1")));
  EXPECT_THAT(simclr.message(),
              HasSubstr("simclr.yaml:2: config.LOSS.simclr_info_nce_loss.buffer_params.embedding_dim is 'x'"));
  EXPECT_THAT(Make("multicrop_simclr_info_nce_loss", "\nnum_crops: 1\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("simclr.yaml:2: config.LOSS.multicrop_simclr_info_nce_loss.num_crops")));
}

}  // namespace
}  // namespace ssl
