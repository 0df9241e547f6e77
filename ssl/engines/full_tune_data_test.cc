// SPDX-License-Identifier: Apache-2.0
//
// What a fine-tuning reads where the run has no test set: a tenth of each class is held out.
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/sample.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/full_tune_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kImages = 40;
constexpr int64_t kClasses = 4;

// Notes which images are read.
class NotedImages : public Dataset {
 public:
  NotedImages(std::unique_ptr<Dataset> images, std::set<int64_t>* noted) : images_(std::move(images)), noted_(noted) {}

  int64_t size() const override { return images_->size(); }
  bool has_labels() const override { return true; }
  std::string description() const override { return images_->description(); }
  absl::Status Get(int64_t index, Sample* sample) const override {
    if (noted_ != nullptr) noted_->insert(index);
    return images_->Get(index, sample);
  }
  int64_t Label(int64_t index) const override { return images_->Label(index); }

 private:
  const std::unique_ptr<Dataset> images_;
  std::set<int64_t>* const noted_;
};

class FullTuneDataTest : public FullTuneRun {
 protected:
  void SetUp() override {
    FullTuneRun::SetUp();
    const auto make = [this](const ConfigNode& split,
                             const BuildContext& context) -> absl::StatusOr<std::unique_ptr<Dataset>> {
      ImageArray array;
      array.count = kImages;
      array.height = array.width = 16;
      for (int64_t i = 0; i < kImages; ++i) {
        array.pixels.insert(array.pixels.end(), 16 * 16, static_cast<uint8_t>(5 * i));
        array.labels.push_back(i % kClasses);
      }
      SSL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> images, ArrayDataset::Create(std::move(array), "noted images"));
      // Ranks are threads.
      std::set<int64_t>* noted = context.communicator.size() == 1 ? &read_[split.Find("SPLIT")->text()] : nullptr;
      return std::make_unique<NotedImages>(std::move(images), noted);
    };
    ASSERT_OK(registries_.datasets.Register("noted", make));
    config_.SetPath("DATA.TRAIN.DATA_SOURCES", ConfigNode::FromStrings({"noted"}));
    config_.SetPath("DATA.TRAIN.DATA_LIMIT", ConfigNode::FromInt(-1));
    const ConfigNode transforms = *config_.FindPath("DATA.TEST.TRANSFORMS");
    config_.SetPath("DATA.TEST", *registries_.options.Defaults().FindPath("DATA.TEST"));
    config_.SetPath("DATA.TEST.TRANSFORMS", transforms);
    SaveCheckpoint();
  }

  void Set(const std::string& key, const std::string& value) {
    config_.SetPath(key, ParseYaml(value, "mine.yaml", nullptr).value());
  }

  bool HasSaved(const std::string& step) const {
    return PosixFileSystem().IsDirectory(directory_ + "/full_tune/checkpoints/" + step);
  }

  std::map<std::string, std::set<int64_t>> read_;  // by SPLIT
};

// One of ten of each class is held out; some of the others are the few with labels.
TEST_F(FullTuneDataTest, FewLabels_AreNoneOfTheTestSet) {
  Set("FULL_TUNE.DATA_LIMIT", "8");
  ASSERT_OK(Run().status());
  EXPECT_TRUE(HasSaved("step_2"));
  EXPECT_GE(read_["train"].size(), 8u);
  EXPECT_EQ(read_["test"].size(), 4u);
  for (const int64_t image : read_["test"]) EXPECT_EQ(read_["train"].count(image), 0u) << image;
}

// All that the run has been trained on, and more than is left of it.
TEST_F(FullTuneDataTest, AsManyLabelsAsThereAreImages_AreThoseThatAreNotHeldOut) {
  Set("FULL_TUNE.DATA_LIMIT", "40");
  Set("FULL_TUNE.BATCH_SIZE", "40");
  ASSERT_OK(Run().status());
  EXPECT_EQ(read_["train"].size(), 36u);
  EXPECT_TRUE(HasSaved("step_2"));
}

TEST_F(FullTuneDataTest, FewLabelsOfSeveralRanks_AreABatchOfEach) {
  Set("FULL_TUNE.DATA_LIMIT", "8");
  EXPECT_OK(RunOnRanks(2, [](const EngineReport& report) { EXPECT_THAT(report.summary, HasSubstr("\n2 ")); }));
  EXPECT_TRUE(HasSaved("step_2"));
}

TEST_F(FullTuneDataTest, HowTrainingTakesItsSamples_IsNotTheTestsWay) {
  const ConfigNode plain = config_;
  constexpr struct {
    const char* key;
    const char* value;
  } kWays[] = {{"BROKEN_IMAGES", "skip"},
               {"MINI_EPOCHS", "2"},
               {"POWER_LAW_SAMPLER.ENABLED", "True"},
               {"USE_STATEFUL_DISTRIBUTED_SAMPLER", "True"}};
  for (const auto& [key, value] : kWays) {
    config_ = plain;
    Set(absl::StrCat("DATA.TRAIN.", key), value);
    EXPECT_OK(Check()) << key;
    Set("CHECKPOINT.OVERWRITE_EXISTING", "True");
    EXPECT_OK(Run().status()) << key;
  }
}

// 36 samples in batches of 16, twice, of one view each.
TEST_F(FullTuneDataTest, HowThePretrainingTakesItsSamples_IsNotTheTuningsWay) {
  const ConfigNode plain = config_;
  constexpr const char* kWays[] = {
      "STRATIFIED_SAMPLER: {ENABLED: True, CLASSES_PER_BATCH: 4, STEP_PER_EPOCH: 5}",
      "POWER_LAW_SAMPLER: {ENABLED: True, POWER: 0.5}",
      "USE_DEBUGGING_SAMPLER: True",
      "{COLLATE_FUNCTION: cutmixup_collator, COLLATE_FUNCTION_PARAMS: {mixup_alpha: 1.0, num_classes: 4}}",
  };
  for (const char* way : kWays) {
    config_ = plain;
    ConfigNode train = *config_.FindPath("DATA.TRAIN");
    MergeInto(&train, ParseYaml(way, "mine.yaml", nullptr).value());
    config_.SetPath("DATA.TRAIN", std::move(train));
    EXPECT_OK(Check()) << way;
    Set("CHECKPOINT.OVERWRITE_EXISTING", "True");
    EXPECT_OK(Run().status()) << way;
    EXPECT_TRUE(HasSaved("step_6")) << way;
  }
}

TEST_F(FullTuneDataTest, InputsOfThePretrainingsCollator_AreNotTheTunings) {
  Set("DATA.TRAIN.COLLATE_FUNCTION", "patch_and_image_collator");
  Set("DATA.TRAIN.INPUT_KEY_NAMES", "[patches, images]");
  Set("DATA.TRAIN.TRANSFORMS",
      "[{name: ImgPilToPatchesAndImage, num_patches: 4, crop_size_image: 16, "
      "crop_size_patches: 16}, {name: ToTensor}]");
  Set("MODEL.MULTI_INPUT_HEAD_MAPPING", "[[patches, []], [images, []]]");
  Set("MODEL.HEAD.PARAMS", "[[mlp, {dims: [32, 16]}], [mlp, {dims: [32, 16]}]]");
  SaveCheckpoint();
  EXPECT_OK(Check());
  EXPECT_OK(Run().status());
  EXPECT_TRUE(HasSaved("step_6"));
}

TEST_F(FullTuneDataTest, WhatATestPhaseRefuses_IsFoundByTheCheck) {
  Set("DATA.TEST.BROKEN_IMAGES", "skip");
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("mine.yaml:1: config.DATA.TEST.BROKEN_IMAGES is skip, expected gray or"));
  EXPECT_THAT(Run().status(), refused);
  EXPECT_THAT(Check(), refused);
}

TEST_F(FullTuneDataTest, WhatItsTrainingRefuses_IsFoundByTheCheck) {
  Set("FULL_TUNE.TRANSFORMS", "[{name: CenterCrop, size: 0}]");
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mine.yaml:1: TRANSFORMS.CenterCrop.size is '0'"));
  EXPECT_THAT(Run().status(), refused);
  EXPECT_THAT(Check(), refused);
}

// 36 samples in batches of 16, twice.
TEST_F(FullTuneDataTest, FolderRecipe_LeavesItsSettings) {
  Set("FOLDER_RECIPE.ENABLED", "True");
  ASSERT_OK(Run().status());
  EXPECT_TRUE(HasSaved("step_6"));
}

}  // namespace
}  // namespace ssl
