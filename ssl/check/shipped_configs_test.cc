// SPDX-License-Identifier: Apache-2.0
//
// The configurations that come with the program have no mistakes, and everything that they name can be built.
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// Images that the program makes itself take the place of data that is not here, and the CPU that of a GPU.
const char* const kWhatIsHere[] = {
    "config.DATA.TRAIN.DATA_SOURCES=[synthetic]",
    "config.DATA.TEST.DATA_SOURCES=[synthetic]",
    "config.DATA.TRAIN.LABEL_SOURCES=[synthetic]",
    "config.DATA.TEST.LABEL_SOURCES=[synthetic]",
    "config.DATA.TRAIN.RANDOM_SYNTHETIC_LABELS=4",
    "config.DATA.TEST.RANDOM_SYNTHETIC_LABELS=4",
    "config.DATA.TRAIN.DATA_LIMIT=600",
    "config.DATA.TEST.DATA_LIMIT=600",
    "config.MACHINE.DEVICE=cpu",
};

class ShippedConfigsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterBuiltins(&registries_));
    request_ = MakeRunRequest(registries_);
    request_.search_dirs = {"."};
  }

  ConfigReport Check(std::vector<std::string> tokens) {
    request_.tokens = std::move(tokens);
    return CheckConfig(request_, registries_);
  }

  // Everything up to the first step is built.
  void ExpectRuns(std::vector<std::string> tokens) {
    tokens.insert(tokens.end(), std::begin(kWhatIsHere), std::end(kWhatIsHere));
    const ConfigReport report = Check(std::move(tokens));
    EXPECT_EQ(VerdictOf(report), ConfigVerdict::kRuns) << FormatReport(report);
  }

  Registries registries_;
  ComposeRequest request_;
};

TEST_F(ShippedConfigsTest, HaveNoMistakes_AndAreBuilt) {
  int built = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("configs/config")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const std::string token = absl::StrCat("config=", entry.path().string());
    const ConfigReport report = Check({token});
    EXPECT_TRUE(report.mistakes.empty()) << FormatReport(report);
    if (report.is_fragment) continue;
    ExpectRuns({token});
    ++built;
  }
  EXPECT_GE(built, 20);
}

// Each fragment on top of the configuration that it belongs to.
TEST_F(ShippedConfigsTest, FragmentsFitTheirConfigurations) {
  int built = 0;
  for (const char* method : {"swav", "simclr"}) {
    const std::filesystem::path folder = std::filesystem::path("configs/config/pretrain") / method;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml" || entry.path().parent_path() == folder) continue;
      SCOPED_TRACE(entry.path().string());
      const std::string group = entry.path().parent_path().lexically_relative("configs/config").string();
      ExpectRuns({absl::StrCat("config=pretrain/", method, "/", method, "_resnet50_imagenet"),
                  absl::StrCat("+config/", group, "=", entry.path().stem().string())});
      ++built;
    }
  }
  EXPECT_GE(built, 3);
}

}  // namespace
}  // namespace ssl
