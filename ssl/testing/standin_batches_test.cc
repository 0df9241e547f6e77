// SPDX-License-Identifier: Apache-2.0
//
// Runs that read image files train on a device as on the CPU, bit for bit, from batches that are copied there as 8-bit
// pixels while the step before computes. The device is the stand-in of the tests (docs/devices.md), whose copies come
// as late as they may.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_pinned_memory.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kImagesOfClass = 28;  // of two classes: epochs of three batches of 16
constexpr int64_t kSteps = 12;

constexpr char kCommon[] = R"(
DATA:
  NUM_DATALOADER_WORKERS: 2
  TRAIN:
    DATA_SOURCES: [disk_folder]
    LABEL_SOURCES: [disk_folder]
    DATASET_NAMES: [photos]
    DATA_LIMIT: -1
    MAX_BROKEN_FRACTION: 1.0
    TRANSFORMS:
      - {name: RandomResizedCrop, size: 16}
      - {name: RandomHorizontalFlip}
      - {name: ColorJitter, brightness: 0.4}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
MODEL:
  TRUNK:
    NAME: vision_transformer
    VISION_TRANSFORMERS: {IMAGE_SIZE: 16, PATCH_SIZE: 4, NUM_LAYERS: 1, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_DIM: 30,
                          QKV_BIAS: True, DROPOUT_RATE: 0.1}
  HEAD: {PARAMS: [[mlp, {dims: [16, 2]}]]}
LOSS: {name: cross_entropy_multiple_output_single_target}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.1, end_value: 0.0}}}
)";

// Random colours. Of class "a", every seventh file is no image.
std::string MakePhotos(const std::vector<std::string>& classes) {
  const std::string folder = MakeTempDir("photos");
  uint32_t state = 1;
  for (const std::string& name : classes) {
    EXPECT_OK(PosixFileSystem().CreateDirectories(absl::StrCat(folder, "/", name)));
    for (int i = 0; i < kImagesOfClass; ++i) {
      Image image;
      std::generate_n(image.Allocate(20, 24, 3), 20 * 24 * 3, [&] {
        state = state * 1664525 + 1013904223;
        return static_cast<uint8_t>(state >> 24);
      });
      const bool is_broken = name == "a" && i % 7 == 5;
      EXPECT_OK(WriteFileAtomically(PosixFileSystem(), absl::StrCat(folder, "/", name, "/", 100 + i, ".png"),
                                    is_broken ? "no image" : EncodePng(image).value()));
    }
  }
  return folder;
}

class StandinBatches : public testing::Test {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  TrainingRun Run(const std::string& device, const std::string& directory, const std::string& config = "{}") const {
    TrainingRun run;
    run.config = {
        kCommon, absl::StrCat("DATA: {TRAIN: {DATA_PATHS: [", photos_, "]}}\nMACHINE: {DEVICE: ", device, "}"), config};
    run.directory = absl::StrCat(root_, "/", directory);
    return run;
  }

  // Losses and images of each step, and what is saved.
  void ExpectSameRuns(const std::string& config, int64_t steps) const {
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> expected, Train(Run("cpu", "cpu", config)));
    const TransferLog log;
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> found, Train(Run("gpu", "device", config)));
    uploads_ = log.uploads();
    EXPECT_EQ(found[0].losses, expected[0].losses);
    EXPECT_EQ(found[0].images, expected[0].images);
    EXPECT_NE(expected[0].losses.front(), expected[0].losses.back());
    ExpectEqual(Saved(root_ + "/device", steps), Saved(root_ + "/cpu", steps));
  }

  absl::StatusOr<std::string> BrokenImagesOf(const std::string& directory) const {
    return PosixFileSystem().Read(absl::StrCat(root_, "/", directory, "/broken_images.json"));
  }

  const std::string photos_ = MakePhotos({"a", "b"});
  const std::string root_ = MakeTempDir("standin_batches");
  mutable TransferCounts uploads_;  // of the run on the device
};

int64_t Count(const TransferCounts& counts, const std::string& what) {
  const auto found = counts.find("copy to the device of " + what);
  return found != counts.end() ? found->second : 0;
}

TEST_F(StandinBatches, Images_AreCopiedAsPixels_OnceForEachBatch) {
  ExpectSameRuns("{}", kSteps);
  EXPECT_EQ(Count(uploads_, "Byte [16, 3, 16, 16]"), kSteps);
  EXPECT_EQ(Count(uploads_, "Long [16]"), kSteps);
  EXPECT_EQ(Count(uploads_, "Float [16, 3, 16, 16]"), 0);
}

TEST_F(StandinBatches, ImagesThatAreErased_AreCopiedAsFloats) {
  ExpectSameRuns(R"(
DATA:
  TRAIN:
    TRANSFORMS: [{name: RandomResizedCrop, size: 16}, {name: ToTensor}, {name: Normalize, mean: [0.4], std: [0.2]},
                 {name: RandomErasing}]
)",
                 kSteps);
  EXPECT_EQ(Count(uploads_, "Float [16, 3, 16, 16]"), kSteps);
  EXPECT_EQ(Count(uploads_, "Byte [16, 3, 16, 16]"), 0);
}

// Batches that are not full, of a split whose classes have other numbers.
TEST_F(StandinBatches, TestPhases_AreThoseOfTheCpu) {
  const std::string config = absl::StrCat(R"(
TEST_MODEL: True
DATA:
  TEST:
    DATA_SOURCES: [disk_folder]
    LABEL_SOURCES: [disk_folder]
    DATASET_NAMES: [photos]
    BATCHSIZE_PER_REPLICA: 12
    TRANSFORMS: [{name: CenterCrop, size: 16}, {name: ToTensor}, {name: Normalize, mean: [0.4], std: [0.2]}]
    DATA_PATHS: [)",
                                          MakePhotos({"b"}), "]\n");
  ExpectSameRuns(config, kSteps);
  EXPECT_EQ(Count(uploads_, "Byte [12, 3, 16, 16]"), 2 * 4);
  EXPECT_EQ(Count(uploads_, "Byte [4, 3, 16, 16]"), 4);
}

TEST_F(StandinBatches, RunThatStopsWithinAnEpoch_GoesOnAsIfItHadNot) {
  EXPECT_OK(Train(Run("cpu", "whole")));
  for (const int64_t stop : {1, 4, 5}) {
    SCOPED_TRACE(absl::StrCat("stopped at ", stop));
    const std::string directory = absl::StrCat("stopped_", stop);
    TrainingRun first = Run("gpu", directory);
    first.last_iteration = stop;
    EXPECT_OK(Train(first));
    EXPECT_OK(Train(Run("gpu", directory)));
    ExpectEqual(Saved(root_ + "/" + directory, kSteps), Saved(root_ + "/whole", kSteps));
  }
}

// Of two batches an update, the third of an epoch is left out: what was broken in it was not met.
TEST_F(StandinBatches, BrokenImages_AreCountedAsOnTheCpu) {
  ExpectSameRuns("OPTIMIZER: {grad_acc_steps: 2}\nHOOKS: {BROKEN_IMAGES: {COUNT: True}}", /*steps=*/4);
  ASSERT_OK_AND_ASSIGN(const std::string expected, BrokenImagesOf("cpu"));
  ASSERT_OK_AND_ASSIGN(const std::string found, BrokenImagesOf("device"));
  EXPECT_EQ(found, expected);
}

// Views that the device makes are those of the loader's threads, which make them where AUGMENT_ON is host.
class StandinAugmentation : public StandinBatches {
 protected:
  static std::string With(const std::string& transforms, const std::string& train_keys) {
    return absl::StrCat("DATA: {TRAIN: {TRANSFORMS: [", transforms, "], ", train_keys, "}}");
  }

  // Trains on the CPU, and on the device, which augments.
  void ExpectSameViews(const std::string& transforms, const std::string& train_keys, const std::string& config,
                       int64_t batch_size = 16) const {
    TrainingRun on_cpu = Run("cpu", "cpu", With(transforms, train_keys));
    TrainingRun on_device = Run("gpu", "device", With(transforms, absl::StrCat(train_keys, ", AUGMENT_ON: device")));
    for (TrainingRun* run : {&on_cpu, &on_device}) {
      run->config.insert(run->config.end(), {config, "hooks: [{type: crop_images, kwargs: {freq: 4}}]"});
      run->samples_per_update = batch_size;
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> expected, Train(on_cpu));
    const TransferLog log;
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> found, Train(on_device));
    uploads_ = log.uploads();
    EXPECT_EQ(found[0].losses, expected[0].losses);
    EXPECT_EQ(found[0].images, expected[0].images);
    EXPECT_NE(expected[0].losses.front(), expected[0].losses.back());
    ExpectEqual(Saved(root_ + "/device", kSteps), Saved(root_ + "/cpu", kSteps));
    constexpr char kSheet[] = "/crops/iteration_5/crop_images.crops_0.png";
    ASSERT_OK_AND_ASSIGN(const std::string expected_sheet, PosixFileSystem().Read(absl::StrCat(root_, "/cpu", kSheet)));
    ASSERT_OK_AND_ASSIGN(const std::string sheet, PosixFileSystem().Read(absl::StrCat(root_, "/device", kSheet)));
    EXPECT_TRUE(sheet == expected_sheet) << "contact sheets of crops differ";
  }
};

constexpr char kFloats[] =
    "{name: ToTensor}, {name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}";
constexpr char kEverything[] =
    "{name: RandomResizedCrop, size: 16}, {name: RandomHorizontalFlip}, {name: ImgPilColorDistortion, strength: 1.0}, "
    "{name: ImgPilGaussianBlur, p: 0.5, radius_min: 0.1, radius_max: 2.0}, {name: ImgPilRandomSolarize, p: 0.3}";

TEST_F(StandinAugmentation, Views_AreThoseOfTheHost) {
  ExpectSameViews(absl::StrCat(kEverything, ", ", kFloats), "DROP_LAST: True", "{}");
  EXPECT_EQ(Count(uploads_, "Byte [16, 3, 16, 16]"), 0);
  EXPECT_EQ(Count(uploads_, "Float [16, 3, 16, 16]"), 0);
  EXPECT_EQ(Count(uploads_, "Long [16]"), kSteps);
}

// 56 images in batches of 24: the last one of an epoch has 8.
TEST_F(StandinAugmentation, SmallerLastBatch_IsThatOfTheHost) {
  ExpectSameViews(absl::StrCat(kEverything, ", ", kFloats), "DROP_LAST: False", "{}", /*batch_size=*/24);
}

TEST_F(StandinAugmentation, BrokenImages_AreCountedAndReplacedAsOnTheCpu) {
  for (const char* const what : {"gray", "skip"}) {
    ExpectSameViews(absl::StrCat(kEverything, ", ", kFloats), absl::StrCat("BROKEN_IMAGES: ", what),
                    "HOOKS: {BROKEN_IMAGES: {COUNT: True}}");
    ASSERT_OK_AND_ASSIGN(const std::string expected, BrokenImagesOf("cpu"));
    ASSERT_OK_AND_ASSIGN(const std::string found, BrokenImagesOf("device"));
    EXPECT_EQ(found, expected);
    ASSERT_OK(PosixFileSystem().RemoveAll(root_ + "/cpu"));
    ASSERT_OK(PosixFileSystem().RemoveAll(root_ + "/device"));
  }
}

TEST_F(StandinAugmentation, CropsOfSeveralSizes_AreThoseOfTheHost) {
  ExpectSameViews(
      absl::StrCat("{name: ImgPilToMultiCrop, total_num_crops: 4, num_crops: [2, 2], size_crops: [16, 8], "
                   "crop_scales: [[0.14, 1.0], [0.05, 0.14]]}, {name: RandomHorizontalFlip}, "
                   "{name: ImgPilGaussianBlur, p: 0.5, radius_min: 0.1, radius_max: 2.0, indices: [0, 3]}, ",
                   kFloats),
      "COLLATE_FUNCTION: multicrop_collator", R"(
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [16, 32, 16], use_bn: True, num_clusters: [8]}]]}}
LOSS: {name: swav_loss}
)");
}

TEST_F(StandinAugmentation, RunThatStopsWithinAnEpoch_GoesOnAsIfItHadNot) {
  const std::string augment = "DATA: {TRAIN: {AUGMENT_ON: device}}";
  EXPECT_OK(Train(Run("cpu", "whole")));
  for (const int64_t stop : {1, 5}) {
    SCOPED_TRACE(absl::StrCat("stopped at ", stop));
    const std::string directory = absl::StrCat("stopped_", stop);
    TrainingRun first = Run("gpu", directory, augment);
    first.last_iteration = stop;
    EXPECT_OK(Train(first));
    EXPECT_OK(Train(Run("gpu", directory, augment)));
    ExpectEqual(Saved(root_ + "/" + directory, kSteps), Saved(root_ + "/whole", kSteps));
  }
}

TEST_F(StandinAugmentation, WhatADeviceCannotDo_IsRefused) {
  const auto refusal = [this](const std::string& device, const std::string& config) {
    return std::string(Train(Run(device, "refused", config)).status().message());
  };
  EXPECT_THAT(refusal("cpu", "DATA: {TRAIN: {AUGMENT_ON: device}}"), HasSubstr("config.MACHINE.DEVICE is cpu"));
  EXPECT_THAT(refusal("gpu", With(absl::StrCat("{name: CenterCrop, size: 16}, ", kFloats), "AUGMENT_ON: device")),
              HasSubstr("config.DATA.TRAIN.TRANSFORMS.0 is CenterCrop, which only the host can do"));
  EXPECT_THAT(refusal("gpu", With(absl::StrCat("{name: RandomHorizontalFlip}, ", kEverything, ", ", kFloats),
                                  "AUGMENT_ON: device")),
              AllOf(HasSubstr("config.DATA.TRAIN.AUGMENT_ON is device"),
                    HasSubstr("transform 0, 'RandomHorizontalFlip': stands before a crop")));
  EXPECT_THAT(refusal("gpu", With(absl::StrCat(kEverything, ", {name: ColorJitter}, ", kFloats), "AUGMENT_ON: device")),
              HasSubstr("view 0 may take 11 steps after its crop, expected at most 8"));
  EXPECT_THAT(refusal("gpu", With(absl::StrCat(kEverything, ", {name: ImgPilToRawTensor}"), "AUGMENT_ON: device")),
              HasSubstr("ToTensor and one Normalize"));
}

// Counts the steps of a run.
class CountHook : public Hook {
 public:
  explicit CountHook(int64_t* steps) : steps_(*steps) {}
  absl::string_view name() const override { return "count"; }
  HookStage stage() const override { return HookStage::kReport; }
  absl::Status OnStep(StepContext& context) override {
    ++steps_;
    return absl::OkStatus();
  }

 private:
  int64_t& steps_;
};

TEST_F(StandinBatches, MemoryThatCannotBePinned_IsToldBeforeTheFirstStep) {
  TrainingRun run = Run("gpu", "device");
  bool is_built = false;
  run.prepare = [&is_built](Session&, const Communicator&) {
    is_built = true;
    return absl::OkStatus();
  };
  FailNextPinning();
  EXPECT_THAT(Train(run).status(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory for batches")));
  EXPECT_FALSE(is_built);
}

TEST_F(StandinBatches, ErrorOfABatch_EndsTheRunWithItsOwnStep) {
  const auto train = [this](const std::string& device, int64_t* steps) {
    TrainingRun run = Run(device, device, "DATA: {TRAIN: {BROKEN_IMAGES: error}}");
    run.prepare = [steps](Session& session, const Communicator&) {
      return session.AddHook(std::make_unique<CountHook>(steps));
    };
    return Train(run).status();
  };
  int64_t on_cpu = 0;
  int64_t on_device = 0;
  const absl::Status expected = train("cpu", &on_cpu);
  const absl::Status found = train("gpu", &on_device);
  EXPECT_EQ(found, expected);
  EXPECT_THAT(std::string(expected.message()), HasSubstr(".png"));
  EXPECT_EQ(on_device, on_cpu);
}

}  // namespace
}  // namespace ssl
