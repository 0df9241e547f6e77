// SPDX-License-Identifier: Apache-2.0
//
// An evaluation takes how images are seen from the run whose network it evaluates; and how its results are kept.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/recorded_run.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/saved_settings.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/images_of_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

// Of DATA.TRAIN, none of them the default.
constexpr char kReading[] = "IMAGE_CHANNELS: 1\nEXIF_ORIENTATION: True\nDECODE: fast\nGRAY_16_BIT: clip\n";

class ImagesOfRunTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  // DATA.TRAIN of synthetic images with crops of `size`, and the lines `more` of it.
  ConfigNode Config(int size, const std::string& more = "") {
    const ConfigNode train =
        ParseYaml(absl::StrCat("DATA_SOURCES: [synthetic]\nTRANSFORMS: [{name: RandomCrop, size: ", size,
                               "}, {name: ToTensor}, {name: Normalize, mean: [0.", size, "], std: [0.5]}]\n", more),
                  "run.yaml", nullptr)
            .value();
    ConfigNode config = registries_.options.Defaults();
    for (const auto& [key, value] : train.entries()) config.SetPath(absl::StrCat("DATA.TRAIN.", key), value);
    return config;
  }

  static RecordedRun RunOf(const ConfigNode& config) { return {SettingsOf(config), 1, "run/step_7/config.json"}; }

  EvaluationPlan Plan(const ConfigNode& config, const RecordedRun& run) {
    return PlanEvaluation(config, registries_.options.Defaults(), PosixFileSystem(), &run);
  }

  Registries registries_;
};

std::string At(const EvaluationPlan& plan, const std::string& path) {
  const ConfigNode* node = plan.config.FindPath(path);
  return node == nullptr ? "(none)" : node->text();
}

// Without a run: as the configuration has training read them.
TEST_F(ImagesOfRunTest, TestSetWithSourcesOfItsOwn_IsReadAsTraining_WhereItSaysNothing) {
  const ConfigNode defaults = registries_.options.Defaults();
  const auto plan = [&](const std::string& test) {
    ConfigNode config = Config(8, kReading);
    const ConfigNode own =
        ParseYaml("DATA_SOURCES: [disk_filelist]\nDATA_PATHS: [list.txt]\n" + test, "run.yaml", nullptr).value();
    for (const auto& [key, value] : own.entries()) config.SetPath(absl::StrCat("DATA.TEST.", key), value);
    const ConfigNode written = ParseYaml(WriteYaml(config), "train_config.yaml", nullptr).value();
    const auto test_of = [&](const ConfigNode& read) {
      return PlanEvaluation(read, defaults, PosixFileSystem()).config.Section("DATA.TEST");
    };
    return std::pair(test_of(config), test_of(written));
  };
  const auto [own, own_again] = plan("GRAY_16_BIT: scale\n");
  EXPECT_EQ(own.Find("DECODE")->text(), "fast");
  EXPECT_EQ(own.Find("EXIF_ORIENTATION")->text(), "True");
  EXPECT_EQ(own.Find("GRAY_16_BIT")->text(), "scale");
  EXPECT_EQ(plan("TRANSFORMS: [{name: ToTensor}]\n").first.Find("DECODE")->text(), "exact");
  EXPECT_EQ(plan("").second.Find("GRAY_16_BIT")->text(), "clip") << "all keys stand in the run's own file";
}

TEST_F(ImagesOfRunTest, WhatTheRunHad_CountsWhateverTheConfigurationLeadsTo) {
  const EvaluationPlan plan = Plan(Config(48), RunOf(Config(32, kReading)));
  EXPECT_EQ(At(plan, "DATA.TEST.TRANSFORMS.1.size"), "32");
  EXPECT_EQ(At(plan, "DATA.TEST.TRANSFORMS.3.mean.0"), "0.32");
  for (const char* split : {"DATA.TRAIN.", "DATA.TEST."}) {
    EXPECT_EQ(At(plan, absl::StrCat(split, "IMAGE_CHANNELS")), "1") << split;
    EXPECT_EQ(At(plan, absl::StrCat(split, "EXIF_ORIENTATION")), "true") << split;
    EXPECT_EQ(At(plan, absl::StrCat(split, "DECODE")), "fast") << split;
    EXPECT_EQ(At(plan, absl::StrCat(split, "GRAY_16_BIT")), "clip") << split;
  }
  EXPECT_THAT(plan.choices[0], HasSubstr("config.DATA.TRAIN.TRANSFORMS is what the run was trained with "
                                         "(run/step_7/config.json), not what stands in run.yaml:2"));
}

TEST_F(ImagesOfRunTest, TestSetWithSourcesOfItsOwn_IsReadAsTheRunReadItsImages_WhereItSaysNothing) {
  ConfigNode config = Config(48);
  config.SetPath("DATA.TEST.DATA_SOURCES", ConfigNode::FromStrings({"disk_folder"}));
  config.SetPath("DATA.TEST.DECODE", ConfigNode::Scalar("exact", /*quoted=*/false, {"run.yaml", 9}));
  const EvaluationPlan plan = Plan(config, RunOf(Config(32, kReading)));
  EXPECT_EQ(At(plan, "DATA.TEST.TRANSFORMS.1.size"), "32");
  EXPECT_EQ(At(plan, "DATA.TEST.IMAGE_CHANNELS"), "1");
  EXPECT_EQ(At(plan, "DATA.TEST.EXIF_ORIENTATION"), "true");
  EXPECT_EQ(At(plan, "DATA.TEST.GRAY_16_BIT"), "clip");
  EXPECT_EQ(At(plan, "DATA.TEST.DECODE"), "exact");
  EXPECT_EQ(At(plan, "DATA.TRAIN.DECODE"), "fast");
  EXPECT_THAT(plan.choices,
              Contains(HasSubstr("test images are read as those of training, with "
                                 "config.DATA.TEST.EXIF_ORIENTATION=true, config.DATA.TEST.GRAY_16_BIT")));
}

TEST_F(ImagesOfRunTest, EvaluationOfOtherImages_SaysWhichTheNetworkWasTrainedOn) {
  const auto config_of = [this](const std::string& folder) {
    return Config(32, absl::StrCat("DATA_PATHS: [", folder, "]\n"));
  };
  const std::string photos = MakeTempDir("photos");
  RecordedRun run = RunOf(config_of(photos));
  run.settings["DATA.TRAIN.num_samples"] = "444";
  EXPECT_EQ(OtherImagesOfRun(run, config_of(MakeTempDir("others"))),
            absl::StrCat("the network was trained on the images of [", photos, "] (444 images)"));
  EXPECT_EQ(OtherImagesOfRun(run, config_of(photos + "/.")), "") << "the same folder";
  EXPECT_EQ(OtherImagesOfRun(RunOf(Config(32)), config_of(photos)), "") << "the run names no folder";
}

// As beside a training that makes its first save meanwhile.
TEST_F(ImagesOfRunTest, AllRanks_TakeTheRunThatRankZeroFinds) {
  const std::string directory = MakeTempDir("run");
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  CheckpointStoreOptions options{CheckpointDirectory(directory), 0, "hash"};
  options.config_json = RunIdentity(Config(32), registries_.options, {}).ToJson();
  CheckpointStore store(options, PosixFileSystem(), *alone);
  ASSERT_OK(store.Open());
  ASSERT_OK(store.Save(7, {{"model.safetensors", {}}}));
  const ConfigNode config = Config(48);
  for (const int64_t finder : {0, 1}) {
    std::vector<std::string> sizes(2);
    EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
      StopToken stop;
      ConfigNode results = ConfigNode::Map();
      const std::string own = communicator.rank() == finder ? directory : MakeTempDir("nothing");
      EngineContext context{config, registries_, communicator, stop, PosixFileSystem(), own, results};
      const auto note = [&](EngineContext& complete) -> absl::StatusOr<EngineReport> {
        sizes[communicator.rank()] = complete.config.FindPath("DATA.TEST.TRANSFORMS.1.size")->text();
        return EngineReport();
      };
      return WithEvaluationPlan("knn", context, note).status();
    }));
    EXPECT_THAT(sizes, Each(std::string(finder == 0 ? "32" : "48")));
  }
}

TEST_F(ImagesOfRunTest, WhatIsTyped_Stays) {
  ConfigNode config = Config(48);
  ConfigNode size = ConfigNode::FromInt(24);
  size.Relocate({"command line", 3});
  config.SetPath("DATA.TRAIN.TRANSFORMS.0.size", std::move(size));
  EXPECT_EQ(At(Plan(config, RunOf(Config(32))), "DATA.TEST.TRANSFORMS.1.size"), "24");
  config.SetPath("DATA.TEST.TRANSFORMS", ParseYaml("[{name: ToTensor}]", "run.yaml", nullptr).value());
  EXPECT_EQ(At(Plan(config, RunOf(Config(32))), "DATA.TEST.TRANSFORMS.0.name"), "ToTensor");
}

TEST_F(ImagesOfRunTest, SameSettings_AreNotTold) {
  const EvaluationPlan plan = Plan(Config(32), RunOf(Config(32)));
  EXPECT_EQ(plan.config, PlanEvaluation(Config(32), registries_.options.Defaults(), PosixFileSystem()).config);
  for (const std::string& choice : plan.choices) EXPECT_EQ(choice.find("was trained with"), std::string::npos);
}

TEST(SetResultsTest, FiguresOfTheSameWeightsStay) {
  ConfigNode results =
      ParseYaml("{knn: {raw_pixels: 0.5, trained: 0.6, weights: w, iteration: 7}, other: 1}", "results.json", nullptr)
          .value();
  ConfigNode findings = ConfigNode::Map();
  findings.Set("trained", ConfigNode::FromDouble(0.7));
  SetResults("knn", findings, {"w", 7}, &results);
  EXPECT_TRUE(
      results ==
      ParseYaml("{knn: {raw_pixels: 0.5, trained: 0.7, weights: w, iteration: 7}, other: 1}", "", nullptr).value());
  SetResults("knn", findings, {"v", -1}, &results);
  EXPECT_TRUE(results == ParseYaml("{knn: {trained: 0.7, weights: v}, other: 1}", "", nullptr).value());
}

}  // namespace
}  // namespace ssl
