// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/crop_images_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset_source.h"
#include "ssl/data/datasets/synthetic_dataset.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/image.h"
#include "ssl/data/loader/denormalizer.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Files(const std::string& directory) {
  return PosixFileSystem().List(directory).value_or(std::vector<std::string>());
}

// Of a host, with a data set behind it.
class OwnSource : public BatchSource, public DatasetSource {
 public:
  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return dataset_.size(); }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override { return nullptr; }
  const Dataset& dataset() const override { return dataset_; }

 private:
  const SyntheticDataset dataset_{SyntheticDatasetOptions()};
};

// Row i, column v of the sheet is view v of image i, in the upper left corner of its place.
TEST(SheetOfCrops, HasARowForEachImageAndAColumnForEachView) {
  const at::Tensor large = at::arange(3 * 4 * 4, at::kFloat).view({3, 1, 4, 4});
  const at::Tensor small = at::rand({3, 3, 2, 2});

  const at::Tensor sheet = SheetOfCrops({large, small}, 2, nullptr);

  ASSERT_EQ(sheet.sizes(), at::IntArrayRef({8, 6, 3}));
  ASSERT_EQ(sheet.scalar_type(), at::kByte);
  for (int64_t image = 0; image < 2; ++image) {
    const at::Tensor row = sheet.narrow(0, 4 * image, 4);
    for (int64_t channel = 0; channel < 3; ++channel) {
      // 0, 1, ..., 15 from black to white: steps of 17.
      EXPECT_TRUE(at::equal(row.select(2, channel).narrow(1, 0, 4), at::arange(16).mul(17).view({4, 4}).to(at::kByte)));
    }
    const at::Tensor crop = row.narrow(1, 4, 2).narrow(0, 0, 2);
    EXPECT_EQ(crop.min().item<int64_t>(), 0);
    EXPECT_EQ(crop.max().item<int64_t>(), 255);
    EXPECT_TRUE(at::equal(row.narrow(1, 4, 2).narrow(0, 2, 2), at::full({2, 2, 3}, 255, at::kByte)));
  }
}

TEST(SheetOfCrops, OfADevice_IsThatOfTheHost) {
  StandinDevice::Install();
  const at::Tensor view = at::rand({2, 3, 4, 4});
  const at::Tensor there = view.to(StandinDevice::device());
  EXPECT_TRUE(at::equal(SheetOfCrops({there}, 2, nullptr), SheetOfCrops({view}, 2, nullptr)));
  ASSERT_OK_AND_ASSIGN(const Denormalizer denormalizer, Denormalizer::Create(ConfigNode::List({})));
  EXPECT_TRUE(at::equal(SheetOfCrops({there}, 2, &denormalizer), SheetOfCrops({view}, 2, &denormalizer)));
}

TEST(SheetOfCrops, HasNoMoreRowsThanTheBatchHasImages) {
  EXPECT_EQ(SheetOfCrops({at::rand({3, 3, 4, 4})}, 8, nullptr).size(0), 12);
}

// A crop of one colour shows that colour, and a grey batch is grey.
TEST(SheetOfCrops, HasTheColoursBeforeNormalize) {
  const ConfigNode transforms =
      ParseYaml("[{name: ToTensor}, {name: Normalize, mean: [0.6, 0.4, 0.2], std: [0.2, 0.25, 0.5]}]", "run.yaml",
                nullptr)
          .value();
  ASSERT_OK_AND_ASSIGN(const Denormalizer denormalizer, Denormalizer::Create(transforms));
  const at::Tensor view = at::zeros({1, 3, 2, 2});  // the mean
  const at::Tensor sheet = SheetOfCrops({view}, 1, &denormalizer);
  EXPECT_EQ(sheet[1][1][0].item<int64_t>(), 153);
  EXPECT_EQ(sheet[1][1][1].item<int64_t>(), 102);
  EXPECT_EQ(sheet[1][1][2].item<int64_t>(), 51);
  const ConfigNode of_grey = ParseYaml("[{name: Normalize, mean: [0.2], std: [1]}]", "run.yaml", nullptr).value();
  ASSERT_OK_AND_ASSIGN(const Denormalizer grey_denormalizer, Denormalizer::Create(of_grey));
  const at::Tensor grey = SheetOfCrops({at::zeros({1, 1, 2, 2})}, 1, &grey_denormalizer);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(grey[0][0][c].item<int64_t>(), 51);
}

TEST(CropImagesInARun, Sheets_AreThereAndTrainingIsBitwiseTheSame) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  ASSERT_OK_AND_ASSIGN(
      const TinyRunResult seen,
      TrainTinyRun(
          "hooks: [{type: crop_images, kwargs: {freq: 4}}, {type: crop_images, name: few, kwargs: {num_images: "
          "1}}]"));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(seen.state.at(file), plain.state.at(file)) << file;
  }
  EXPECT_EQ(seen.ImageNames(), (std::set<std::string>{"crop_images/crops_0", "few/crops_0"}));
  EXPECT_THAT(Files(seen.directory + "/crops"), ElementsAre("iteration_1", "iteration_5", "iteration_9"));
  EXPECT_THAT(Files(seen.directory + "/crops/iteration_1"), ElementsAre("crop_images.crops_0.png", "few.crops_0.png"));
  EXPECT_THAT(Files(seen.directory + "/crops/iteration_5"), ElementsAre("crop_images.crops_0.png"));
}

TEST(CropImagesHook, TwoRanks_OneWritesAndAnErrorStopsBoth) {
  const std::string directory = MakeTempDir("crops");
  std::vector<absl::Status> statuses(2);
  ThreadWorld world(2, absl::Seconds(30));
  ASSERT_OK(world.Run([&](Communicator& communicator) -> absl::Status {
    CropImagesHook hook({}, PosixFileSystem(), {directory, ""}, std::nullopt);
    FakeStep step(communicator);
    Batch batch;
    batch.views = {at::rand({2, 3, 8, 8}), at::rand({2, 3, 4, 4})};
    step.context.batch = &batch;
    step.state.iteration = 1;
    const absl::Status status = hook.OnStep(step.context);
    batch.views.push_back(at::rand({2, 5, 8, 8}));
    statuses[communicator.rank()] = hook.OnStep(step.context);
    return status;
  }));
  EXPECT_THAT(Files(directory + "/iteration_1"), ElementsAre("crop_images.crops_0.png"));
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 5 channels")));
  EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kAborted, HasSubstr("writing crops")));
}

// A host's own batches, in [0, 1], have not gone through the configured transforms.
TEST(CropImagesHook, BatchesOfNoDataSet_AreShownAsTheyAre) {
  const ConfigNode transforms =
      ParseYaml("[{name: ToTensor}, {name: Normalize, mean: [0.6], std: [0.2]}]", "run.yaml", nullptr).value();
  ASSERT_OK_AND_ASSIGN(const Denormalizer denormalizer, Denormalizer::Create(transforms));
  const std::string directory = MakeTempDir("crops");
  CropImagesHook hook({}, PosixFileSystem(), {directory, ""}, denormalizer);
  FakeStep step;
  Batch batch;
  batch.views = {at::arange(16, at::kFloat).view({1, 1, 4, 4}).div(15)};
  step.context.batch = &batch;
  step.state.iteration = 1;
  ASSERT_OK(hook.OnStep(step.context));
  Image sheet;
  ASSERT_OK(
      DecodeImage(PosixFileSystem().Read(directory + "/iteration_1/crop_images.crops_0.png").value(), {}, &sheet));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(sheet.row(i / 4)[(i % 4) * sheet.channels()], 17 * i) << i;
}

// A data set may be behind a host's own source, whose transforms are its own; or every view has another Normalize.
TEST(CropImagesHook, BatchesWhoseTransformsAreUnknown_AreShownAsTheyAre) {
  Registries registries;
  ASSERT_OK(RegisterCropImagesHook(&registries));
  ASSERT_OK(registries.options.Add("DATA.TRAIN", [] { return std::make_unique<DataSplitOptions>(); }));
  for (const char* own : {"BASE_DATASET: own, TRANSFORMS: [{name: ToTensor}, {name: Normalize, ",
                          "TRANSFORMS: [{name: ToTensor}, {name: Normalize, indices: [1], "}) {
    const std::string directory = MakeTempDir("crops");
    const ConfigNode config =
        ParseYaml(absl::StrCat("DATA: {TRAIN: {", own, "mean: [0.6], std: [0.2]}]}}"), "run.yaml", nullptr).value();
    FakeStep step;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Hook> hook,
                         registries.hooks.Make("crop_images", ConfigNode::Map(),
                                               {config, registries, step.context.communicator, 0, directory}));
    const OwnSource source;
    step.context.source = &source;
    Batch batch;
    batch.views = {at::arange(16, at::kFloat).view({1, 1, 4, 4}).div(15)};
    step.context.batch = &batch;
    step.state.iteration = 1;
    ASSERT_OK(hook->OnStep(step.context));
    Image sheet;
    ASSERT_OK(DecodeImage(PosixFileSystem().Read(directory + "/crops/iteration_1/crop_images.crops_0.png").value(), {},
                          &sheet));
    for (int i = 0; i < 16; ++i) EXPECT_EQ(sheet.row(i / 4)[(i % 4) * sheet.channels()], 17 * i) << own << i;
  }
}

TEST(CropImagesHook, TestPhasesAndOtherUpdates_AreLeftAlone) {
  const std::string directory = MakeTempDir("crops");
  CropImagesHook hook({}, PosixFileSystem(), {directory, ""}, std::nullopt);
  FakeStep step;
  Batch batch;
  batch.views = {at::rand({2, 3, 8, 8})};
  step.context.batch = &batch;
  step.state.iteration = 2;
  ASSERT_OK(hook.OnStep(step.context));
  step.state.iteration = 1;
  step.state.training = false;
  ASSERT_OK(hook.OnStep(step.context));
  EXPECT_THAT(Files(directory), IsEmpty());
}

}  // namespace
}  // namespace ssl
