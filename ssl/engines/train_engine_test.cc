// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/full_tune_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/methods/simclr/simclr.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A training of one epoch.
class TrainEngineTest : public FullTuneRun {
 protected:
  void SetUp() override {
    FullTuneRun::SetUp();
    ASSERT_OK(RegisterSimclr(&registries_));
    Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "16");
    Set("DATA.TRAIN.TRANSFORMS",
        "[{name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [2], size_crops: [16], crop_scales: [[0.5, 1]]}, "
        "{name: ToTensor}]");
    Set("LOSS",
        "{name: multicrop_simclr_info_nce_loss, multicrop_simclr_info_nce_loss: {buffer_params: "
        "{embedding_dim: 16}}}");
    Set("OPTIMIZER.num_epochs", "1");
    Set("OPTIMIZER.param_schedulers", "{lr: {name: constant, value: 0.01}}");
    Set("TEST_MODEL", "False");
    Set("CHECKPOINT.DIR", directory_);
    ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  }

  void Set(const std::string& path, const std::string& yaml) {
    config_.SetPath(path, ParseYaml(yaml, "override.yaml", nullptr).value());
  }

  absl::StatusOr<EngineReport> Train() {
    const BuildContext build{config_, registries_, *communicator_, 0, directory_, 0};
    SSL_ASSIGN_OR_RETURN(const auto engine, registries_.engines.Make("train", config_, build));
    EngineContext context = Context();
    return engine->Run(context);
  }
};

TEST_F(TrainEngineTest, BrokenImages_AreAmongTheResults) {
  ASSERT_OK(Train());
  EXPECT_EQ(results_.Find("broken_images"), nullptr);
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), directory_ + "/broken_images.json",
                                "{\"by_kind\": {\"damaged\": 3, \"of another format\": 2, \"over a limit\": 1, "
                                "\"missing\": 5, \"unreadable\": 4}}"));
  ASSERT_OK(Train());
  EXPECT_EQ(results_.FindPath("broken_images.total")->text(), "15");
}

// Cut off by a full disk, or another program's: the training is done all the same.
TEST_F(TrainEngineTest, FileOfBrokenImagesThatIsDamaged_IsSetAside) {
  ASSERT_OK(Train());
  const std::string path = directory_ + "/broken_images.json";
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, "{\"by_kind\""));
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Train());
  EXPECT_THAT(report.summary, HasSubstr("finished at iteration 3 of 3"));
  EXPECT_THAT(log.Text(), AllOf(HasSubstr(path + ": has no number"), HasSubstr(path + ".damaged")));
  EXPECT_FALSE(PosixFileSystem().Exists(path));
  EXPECT_EQ(PosixFileSystem().Read(path + ".damaged").value(), "{\"by_kind\"");
}

}  // namespace
}  // namespace ssl
