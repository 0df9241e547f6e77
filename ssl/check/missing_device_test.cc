// SPDX-License-Identifier: Apache-2.0
//
// A configuration for a GPU, checked on a machine that has none: what a login node does for a cluster.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/check/check_config.h"
#include "ssl/check/testing/check_tokens.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGpu[] = "config.MACHINE.DEVICE=gpu";

ConfigReport Check(const std::string& base, const std::vector<std::string>& tokens) {
  std::vector<std::string> all = {absl::StrCat("config=", base), kGpu};
  all.insert(all.end(), tokens.begin(), tokens.end());
  return CheckTokens(std::move(all));
}

TEST(MissingDeviceTest, Alone_IsNoMistake) {
  const ConfigReport report = Check("test/swav_tiny", {});
  EXPECT_EQ(VerdictOf(report), ConfigVerdict::kIncomplete) << FormatReport(report);
  EXPECT_THAT(report.mistakes, IsEmpty());
  EXPECT_THAT(report.missing_components, IsEmpty());
  EXPECT_THAT(report.missing_device, HasSubstr("command line:2: config.MACHINE.DEVICE is gpu"));
  EXPECT_TRUE(LacksDeviceAlone(report));
  EXPECT_THAT(FormatReport(report), HasSubstr("right, but cannot run here\n"));
}

TEST(MissingDeviceTest, MistakesBesideIt_AreFound) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=640", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA is 640"},
      {"config.OPTIMIZER.grad_acc_steps=500", "grad_acc_steps"},
      {"config.MODEL.WEIGHTS_INIT.PARAMS_FILE=no/such/file.torch", "no/such/file.torch"},
      {"config.HOOKS.EVAL={EVERY_EPOCHS: 0}", "config.HOOKS.EVAL"},
  };
  for (const auto& [token, expected] : cases) {
    SCOPED_TRACE(token);
    const ConfigReport report = Check("test/swav_tiny", {token});
    EXPECT_EQ(VerdictOf(report), ConfigVerdict::kMistakes) << FormatReport(report);
    EXPECT_THAT(report.mistakes, Contains(HasSubstr(expected))) << FormatReport(report);
    EXPECT_THAT(report.missing_device, HasSubstr("config.MACHINE.DEVICE is gpu"));
    EXPECT_FALSE(LacksDeviceAlone(report));
  }
}

TEST(MissingDeviceTest, TransformsThatNoDeviceCanDo_AreFound) {
  const ConfigReport report =
      Check("test/swav_tiny", {"config.DATA.TRAIN.AUGMENT_ON=device",
                               "config.DATA.TRAIN.TRANSFORMS=[{name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: "
                               "[2, 1], size_crops: [16, 8], crop_scales: [[0.4, 1.0], [0.15, 0.4]]}, {name: "
                               "RandomErasing, p: 0.5}, {name: ToTensor}]"});
  EXPECT_THAT(report.mistakes, Contains(HasSubstr("RandomErasing"))) << FormatReport(report);
}

TEST(MissingDeviceTest, MissingData_AreNamedBesideIt) {
  const ConfigReport report = Check("test/swav_tiny", {"config.DATA.TRAIN.DATA_SOURCES=[disk_folder]",
                                                       "config.DATA.TRAIN.DATASET_NAMES=[imagenet1k_folder]"});
  EXPECT_THAT(report.missing_components, Contains(HasSubstr("data set 'imagenet1k_folder'")));
  EXPECT_THAT(report.missing_device, HasSubstr("config.MACHINE.DEVICE"));
  EXPECT_FALSE(LacksDeviceAlone(report));
}

TEST(MissingDeviceTest, EnginesThatComputeNothingOnIt_DoNotMissIt) {
  for (const char* const engine : {"preview", "check_data", "export"}) {
    SCOPED_TRACE(engine);
    const ConfigReport report = Check("test/swav_tiny", {absl::StrCat("engine_name=", engine)});
    EXPECT_EQ(VerdictOf(report), ConfigVerdict::kRuns) << FormatReport(report);
  }
}

}  // namespace
}  // namespace ssl
