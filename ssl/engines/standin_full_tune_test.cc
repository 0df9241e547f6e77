// SPDX-License-Identifier: Apache-2.0
//
// full_tune trains and measures on the device of MACHINE.DEVICE what it does on the CPU; the device is the stand-in of
// the tests (docs/devices.md).
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/full_tune_run.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Gt;
using ::testing::SizeIs;

// Without kernels of its own for the CPU.
constexpr char kTrunk[] = R"(
NAME: vision_transformer
VISION_TRANSFORMERS: {IMAGE_SIZE: 16, PATCH_SIZE: 4, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_DIM: 30,
                      DROPOUT_RATE: 0.1, DROP_PATH_RATE: 0.3}
)";

class StandinFullTuneTest : public FullTuneRun {
 protected:
  void SetUp() override {
    StandinDevice::Install();
    FullTuneRun::SetUp();
    config_.SetPath("MODEL.TRUNK", ParseYaml(kTrunk, "test.yaml", nullptr).value());
    config_.SetPath("MODEL.HEAD.PARAMS", ParseYaml("[[mlp, {dims: [16, 16]}]]", "test.yaml", nullptr).value());
  }

  // The table, without its first line, which has the directory.
  absl::StatusOr<std::string> Table(const std::string& device) {
    directory_ = MakeTempDir("standin_full_tune");
    SaveCheckpoint();
    config_.SetPath("MACHINE.DEVICE", ConfigNode::FromString(device));
    SSL_ASSIGN_OR_RETURN(const EngineReport report, Run());
    return report.summary.substr(report.summary.find('\n'));
  }

  std::map<std::string, at::Tensor> Tuned() const { return Saved(directory_ + "/full_tune", /*step=*/6); }
};

TEST_F(StandinFullTuneTest, TableAndWeightsAreThoseOfTheCpu) {
  ASSERT_OK_AND_ASSIGN(const std::string expected, Table("cpu"));
  const std::map<std::string, at::Tensor> tuned = Tuned();
  const TransferLog log;
  ASSERT_OK_AND_ASSIGN(const std::string found, Table("gpu"));
  EXPECT_EQ(found, expected);
  ExpectEqual(Tuned(), tuned);
  EXPECT_THAT(log.uploads(), SizeIs(Gt(0u))) << "it has computed on the CPU";
}

// What it trains with are the transforms of evaluations, which the device has no kernels for.
TEST_F(StandinFullTuneTest, AfterAPretrainingWhoseViewsTheDeviceMakes_TableIsTheSame) {
  ASSERT_OK_AND_ASSIGN(const std::string expected, Table("gpu"));
  config_.SetPath("DATA.TRAIN.AUGMENT_ON", ConfigNode::FromString("device"));
  ASSERT_OK_AND_ASSIGN(const std::string found, Table("gpu"));
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace ssl
