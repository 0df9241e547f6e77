// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/sample.h"
#include "ssl/data/sheets/bitmap_font.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/testing/full_tune_run.h"
#include "ssl/engines/testing/watched_images.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/methods/simclr/simclr.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr double kMean[] = {0.485, 0.456, 0.406};
constexpr double kStd[] = {0.229, 0.224, 0.225};
constexpr int kGap = 4;
constexpr int kCharacter = 6;
constexpr int kCaptions = 2 * (2 + 7);  // the name and the size are below

// Keeps the first batch of a training.
class FirstBatchHook : public Hook {
 public:
  explicit FirstBatchHook(Batch* first) : first_(*first) {}
  absl::string_view name() const override { return "first_batch"; }
  HookStage stage() const override { return HookStage::kObserve; }
  void VisitState(StateVisitor& visitor) override {}
  absl::Status OnBatchStart(StepContext& context) override {
    if (first_.indices.defined()) return absl::OkStatus();
    first_.indices = context.batch->indices.clone();
    for (const at::Tensor& view : context.batch->views) first_.views.push_back(view.clone());
    return absl::OkStatus();
  }

 private:
  Batch& first_;
};

// A host's own batches: no data set is behind them, and no transform of the configuration has seen them.
class GreyRampSource : public BatchSource {
 public:
  GreyRampSource() {
    batch_.indices = at::arange(2);
    batch_.views = {at::arange(16, at::kFloat).view({1, 1, 4, 4}).div(15).repeat({2, 3, 1, 1})};
  }

  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return 2; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override { return &batch_; }

 private:
  Batch batch_;
};

class PreviewEngineTest : public FullTuneRun {
 protected:
  void SetUp() override {
    FullTuneRun::SetUp();
    ASSERT_OK(RegisterSimclr(&registries_));
    Set("SEED_VALUE", "5");
    Set("DATA.NUM_DATALOADER_WORKERS", "2");
    Set("DATA.TRAIN.DEFAULT_GRAY_IMG_SIZE", "40");
    Set("DATA.TRAIN.BATCHSIZE_PER_REPLICA", "16");
    Set("DATA.TRAIN.TRANSFORMS",
        "[{name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [1, 1], size_crops: [16, 10], crop_scales: "
        "[[0.4, 1.0], [0.1, 0.4]]}, {name: RandomHorizontalFlip}, {name: ColorJitter, brightness: 0.4, contrast: 0.4, "
        "saturation: 0.4, hue: 0.1, p: 0.8}, {name: ToTensor}, "
        "{name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}]");
    Set("LOSS",
        "{name: multicrop_simclr_info_nce_loss, multicrop_simclr_info_nce_loss: {buffer_params: "
        "{embedding_dim: 16}}}");
    Set("TEST_MODEL", "False");
    Set("OPTIMIZER.num_epochs", "1");
    Set("OPTIMIZER.param_schedulers", "{lr: {name: constant, value: 0.01}}");
    Set("PREVIEW.NUM_IMAGES", "3");
    ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  }

  void Set(const std::string& path, const std::string& yaml) {
    config_.SetPath(path, ParseYaml(yaml, "override.yaml", nullptr).value());
  }

  // 16 of 60 x 30 pixels and one colour, the first `broken` of them empty files.
  void UsePhotos(int broken) {
    Image image;
    uint8_t* pixels = image.Allocate(30, 60, 3);
    for (int i = 0; i < 3 * 30 * 60; ++i) pixels[i] = std::vector<uint8_t>{200, 100, 50}[i % 3];
    for (int i = 0; i < 16; ++i) {
      const std::string path = absl::StrCat(directory_, "/photos/ant/", 100 + i, ".png");
      ASSERT_OK(PosixFileSystem().CreateDirectories(ParentDirectory(path)));
      ASSERT_OK(WriteFileAtomically(PosixFileSystem(), path, i < broken ? "" : EncodePng(image).value()));
    }
    Set("DATA.TRAIN.DATA_SOURCES", "[disk_folder]");
    Set("DATA.TRAIN.DATA_PATHS", absl::StrCat("[", directory_, "/photos]"));
    Set("DATA.TRAIN.DATA_LIMIT", "-1");
  }

  absl::StatusOr<EngineReport> RunPreview() {
    const BuildContext build{config_, registries_, *communicator_, 0, directory_, 0};
    SSL_ASSIGN_OR_RETURN(const auto engine, registries_.engines.Make("preview", config_, build));
    EngineContext context = Context();
    return engine->Run(context);
  }

  Image Sheet() {
    Image sheet;
    EXPECT_OK(DecodeImage(PosixFileSystem().Read(directory_ + "/preview.png").value(), {}, &sheet));
    return sheet;
  }

  // Of a training with this configuration.
  Batch FirstTrainingBatch() {
    Batch first;
    const std::unique_ptr<Session> session = Session::Create(config_, registries_, {}).value();
    EXPECT_OK(session->AddHook(std::make_unique<FirstBatchHook>(&first)));
    EXPECT_OK(session->Start());
    EXPECT_OK(session->Train());
    return first;
  }
};

// Originals are square, and as wide as the longest of their names, which exceeds the views.
int SideOfOriginals(const at::Tensor& indices) {
  size_t longest = 0;
  for (int64_t row = 0; row < 3; ++row) {
    longest = std::max(longest, absl::StrCat("image ", indices[row].item<int64_t>()).size());
  }
  return kCharacter * static_cast<int>(longest);
}

// Pixels of the sheet, from (top, left), that are not those of the view, whose floats are un-normalised here.
int CountDifferences(const Image& sheet, int top, int left, const at::Tensor& view) {
  int differences = 0;
  for (int y = 0; y < view.size(1); ++y) {
    for (int x = 0; x < view.size(2); ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const double value = view[channel][y][x].item<double>() * kStd[channel] + kMean[channel];
        const int drawn = sheet.row(top + y)[3 * (left + x) + channel];
        if (drawn != std::lround(255 * value)) ++differences;
      }
    }
  }
  return differences;
}

TEST_F(PreviewEngineTest, ViewsAreThoseOfTheFirstTrainingBatch) {
  ASSERT_OK_AND_ASSIGN(const EngineReport report, RunPreview());
  EXPECT_THAT(report.summary, HasSubstr("preview.png"));
  EXPECT_EQ(results_.FindPath("preview.images")->text(), "3");
  EXPECT_EQ(results_.FindPath("preview.views")->text(), "2");
  const Image sheet = Sheet();
  const Batch first = FirstTrainingBatch();
  ASSERT_EQ(first.views.size(), 2u);
  const int side = SideOfOriginals(first.indices);
  const int row_height = side + kCaptions;
  const int first_view = kGap + side + kGap;
  const int second_view = first_view + 12 * kCharacter + kGap;  // "view 0 16x16"
  EXPECT_EQ(sheet.height(), 3 * (row_height + kGap) + kGap);
  EXPECT_EQ(sheet.width(), second_view + 12 * kCharacter + kGap);
  for (int row = 0; row < 3; ++row) {
    const int top = kGap + row * (row_height + kGap);
    EXPECT_EQ(CountDifferences(sheet, top, first_view, first.views[0][row]), 0) << row;
    EXPECT_EQ(CountDifferences(sheet, top, second_view, first.views[1][row]), 0) << row;
  }
  // Another image's views are others.
  EXPECT_GT(CountDifferences(sheet, kGap, first_view, first.views[0][1]), 100);
}

TEST_F(PreviewEngineTest, AnotherSeed_ShowsOtherViews) {
  ASSERT_OK(RunPreview());
  const std::string before = PosixFileSystem().Read(directory_ + "/preview.png").value();
  ASSERT_OK(RunPreview());
  EXPECT_EQ(PosixFileSystem().Read(directory_ + "/preview.png").value(), before);
  Set("SEED_VALUE", "6");
  ASSERT_OK(RunPreview());
  EXPECT_NE(PosixFileSystem().Read(directory_ + "/preview.png").value(), before);
}

TEST_F(PreviewEngineTest, MoreImagesThanTheBatchHas_AreSaidToBeNone) {
  ASSERT_OK_AND_ASSIGN(const EngineReport three, RunPreview());
  EXPECT_THAT(three.summary, HasSubstr("the first 3 images of the first training batch and their 2 views"));
  Set("PREVIEW.NUM_IMAGES", "100");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, RunPreview());
  EXPECT_THAT(report.summary, HasSubstr("the first 16 images of the first training batch, which has no more, and"));
}

TEST_F(PreviewEngineTest, Originals_AreTheFilesScaledToTheViewsOrTheirNames) {
  UsePhotos(/*broken=*/0);
  ASSERT_OK(RunPreview());
  const Image sheet = Sheet();
  const uint8_t* corner = sheet.row(kGap) + 3 * kGap;
  EXPECT_EQ(std::vector<int>(corner, corner + 3), std::vector<int>({200, 100, 50}));
  const int width = 11 * kCharacter;  // "ant/100.png"
  EXPECT_EQ(sheet.row(kGap + width / 2 - 1)[3 * (kGap + width - 1)], 200);
  EXPECT_EQ(sheet.row(kGap + width / 2)[3 * kGap], 255);
}

// How often `text` stands in the sheet.
int CountText(const Image& sheet, const std::string& text) {
  Image drawn;
  std::fill_n(drawn.Allocate(kTextHeight, TextWidth(text), 3), 3 * kTextHeight * TextWidth(text), uint8_t{255});
  DrawText(text, 0, 0, &drawn);
  const auto stands_at = [&](int top, int left) {
    for (int y = 0; y < drawn.height(); ++y) {
      if (!std::equal(drawn.row(y), drawn.row(y) + 3 * drawn.width(), sheet.row(top + y) + 3 * left)) return false;
    }
    return true;
  };
  int count = 0;
  for (int top = 0; top + drawn.height() <= sheet.height(); ++top) {
    for (int left = 0; left + drawn.width() <= sheet.width(); ++left) count += stands_at(top, left) ? 1 : 0;
  }
  return count;
}

TEST_F(PreviewEngineTest, ImageThatCannotBeRead_IsSaidToBeBrokenAndHasNoSize) {
  UsePhotos(/*broken=*/1);
  Set("PREVIEW.NUM_IMAGES", "16");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, RunPreview());
  EXPECT_THAT(report.summary, HasSubstr("; 1 of them cannot be read"));
  const Image sheet = Sheet();
  EXPECT_EQ(CountText(sheet, "broken: empty"), 1);
  EXPECT_EQ(CountText(sheet, "60x30"), 15);
  EXPECT_EQ(CountText(sheet, "40x40"), 0) << "the size of the grey image in its place";
}

TEST_F(PreviewEngineTest, BatchesOfAHostsOwnSource_AreShownAsTheyAre) {
  ASSERT_OK(registries_.batch_sources.Register("grey_ramp", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<BatchSource>>(std::make_unique<GreyRampSource>());
  }));
  Set("DATA.TRAIN.BASE_DATASET", "grey_ramp");
  ASSERT_OK(RunPreview());
  const Image sheet = Sheet();
  for (int i = 0; i < 16; ++i) {
    const uint8_t* pixel = sheet.row(kGap + i / 4) + 3 * (kGap + i % 4);
    EXPECT_EQ(std::vector<int>(pixel, pixel + 3), std::vector<int>(3, 17 * i)) << i;
  }
}

TEST_F(PreviewEngineTest, ViewsOfTheirOwnNormalize_AreShownFromLeastToLargest) {
  Set("DATA.TRAIN.TRANSFORMS",
      "[{name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [1, 1], size_crops: [16, 10], crop_scales: "
      "[[0.4, 1.0], [0.1, 0.4]]}, {name: ToTensor}, {name: Normalize, indices: [0], mean: [0.5], std: [0.25]}]");
  CapturedLog log;
  ASSERT_OK(RunPreview());
  EXPECT_THAT(log.Text(), HasSubstr("from their least value to their largest"));
  const Image sheet = Sheet();
  const int left = kGap + SideOfOriginals(FirstTrainingBatch().indices) + kGap + 12 * kCharacter + kGap;
  std::set<int> values;
  for (int y = 0; y < 10; ++y) {
    const uint8_t* row = sheet.row(kGap + y) + 3 * left;
    values.insert(row, row + 3 * 10);
  }
  EXPECT_EQ(*values.begin(), 0);
  EXPECT_EQ(*values.rbegin(), 255);
}

TEST_F(PreviewEngineTest, OfATrainingOnAGpu_TakesTheMemoryOfTheCpu) {
  StandinDevice::Install();
  const auto told = [this] {
    const CapturedLog log;
    EXPECT_OK(RunPreview());
    return log.lines.front();
  };
  const std::string expected = told();
  EXPECT_THAT(expected, HasSubstr("batches of 16 samples take"));
  Set("MACHINE.DEVICE", "gpu");
  Set("DATA.TRAIN.AUGMENT_ON", "device");
  EXPECT_EQ(told(), expected);
}

TEST_F(PreviewEngineTest, WrongTransform_IsAnErrorThatNamesIt) {
  Set("DATA.TRAIN.TRANSFORMS", "[{name: RandomFlop}]");
  EXPECT_THAT(RunPreview().status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("RandomFlop")));
}

TEST_F(PreviewEngineTest, StopWhileOriginalsAreRead_LeavesNothing) {
  int whole_images = 0;
  ASSERT_OK(registries_.datasets.Register("watched", [&](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Dataset>>(std::make_unique<WatchedImages>(20, 40, 3, &stop_, &whole_images));
  }));
  Set("DATA.TRAIN.DATA_SOURCES", "[watched]");
  Set("DATA.TRAIN.DATA_LIMIT", "-1");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, RunPreview());
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(whole_images, 1);
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/preview.png"));
}

}  // namespace
}  // namespace ssl
