// SPDX-License-Identifier: Apache-2.0
//
// Collators at work in a loader, as configurations build them.
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/merge.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"
#include "ssl/data/loader/data_source_builder.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRun[] = R"(DATA:
  TRAIN:
    DATA_SOURCES: [synthetic]
    DATA_LIMIT: 60
    DEFAULT_GRAY_IMG_SIZE: 12
    RANDOM_SYNTHETIC_LABELS: 5
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS: [{name: ToTensor}]
)";

class CollateTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterData(&registries_)); }

  // kRun with these further lines of TRAIN.
  absl::StatusOr<std::unique_ptr<BatchSource>> Make(const std::string& lines, int workers = 0) {
    Configure(lines, workers);
    return MakeTrainingSource(*config_.FindPath("DATA.TRAIN"), Context());
  }

  void Configure(const std::string& lines, int workers = 0) {
    config_ = registries_.options.Defaults();
    const std::string text = absl::StrCat(kRun, lines, "  NUM_DATALOADER_WORKERS: ", workers, "\n");
    MergeInto(&config_, ParseYaml(text, "run.yaml", nullptr).value());
  }

  BuildContext Context() { return {config_, registries_, *communicator_, /*seed=*/4}; }

  Registries registries_;
  ConfigNode config_;
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

// The bytes of each batch from `first` to the end of the epoch.
std::vector<std::string> Read(BatchSource& source, int64_t epoch, int64_t first = 0) {
  EXPECT_OK(source.StartEpoch(epoch, first));
  std::vector<std::string> batches;
  while (true) {
    const absl::StatusOr<const Batch*> batch = source.Next();
    EXPECT_OK(batch);
    if (!batch.ok() || *batch == nullptr) return batches;
    std::string bytes;
    for (const at::Tensor& tensor : {(*batch)->views[0], (*batch)->targets, (*batch)->indices}) {
      for (const int64_t size : tensor.sizes()) absl::StrAppend(&bytes, size, " ");
      bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    }
    batches.push_back(std::move(bytes));
  }
}

TEST_F(CollateTest, MixedBatches_AreEqualForAnyThreadsAndFromAnyBatchOn) {
  const std::vector<std::string> functions = {"    COLLATE_FUNCTION: multicrop_mixup_collator\n",
                                              "    COLLATE_FUNCTION: cutmixup_collator\n    COLLATE_FUNCTION_PARAMS: "
                                              "{num_classes: 5, mode: elem, cutmix_alpha: "
                                              "1}\n"};
  for (const std::string& function : functions) {
    const auto reference = Make(function).value();
    const std::vector<std::string> first = Read(*reference, 0);
    const std::vector<std::string> second = Read(*reference, 1);
    ASSERT_EQ(first.size(), 4u);
    EXPECT_NE(first, second);
    for (const int workers : {1, 4}) {
      const auto source = Make(function, workers).value();
      EXPECT_EQ(Read(*source, 0), first);
      EXPECT_EQ(Read(*source, 1, 2), std::vector<std::string>(second.begin() + 2, second.end()));
      EXPECT_EQ(Read(*source, 0), first);
    }
  }
}

TEST_F(CollateTest, SoftLabels_AreRowsThatSumToOne) {
  const auto source =
      Make("    COLLATE_FUNCTION: cutmixup_collator\n    COLLATE_FUNCTION_PARAMS: {num_classes: 5}\n", 2).value();
  EXPECT_TRUE(source->has_labels());
  ASSERT_OK(source->StartEpoch(0, 3));
  ASSERT_OK_AND_ASSIGN(const Batch* last, source->Next());
  EXPECT_EQ(last->targets.sizes(), (std::vector<int64_t>{12, 5}));
  EXPECT_EQ(last->targets.scalar_type(), at::kFloat);
  const float* weights = last->targets.const_data_ptr<float>();
  for (int row = 0; row < 12; ++row) {
    float sum = 0.0f;
    for (int label = 0; label < 5; ++label) sum += weights[5 * row + label];
    EXPECT_NEAR(sum, 1.0f, 1e-5f);
  }
}

TEST_F(CollateTest, MulticropMixup_HalvesTheBatch) {
  const auto source = Make("    COLLATE_FUNCTION: multicrop_mixup_collator\n", 2).value();
  ASSERT_OK(source->StartEpoch(0, 0));
  for (const int64_t rows : {8, 8, 8, 6}) {
    ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());
    EXPECT_EQ(batch->size(), rows);
    EXPECT_EQ(batch->views[0].sizes(), (std::vector<int64_t>{rows, 3, 12, 12}));
    EXPECT_EQ(batch->targets.sizes(), (std::vector<int64_t>{rows}));
    EXPECT_EQ(batch->targets[1].item<int64_t>(), batch->indices[1].item<int64_t>() % 5);
  }
}

TEST_F(CollateTest, OneHotTargets_AreRowsOfIntegers) {
  const auto source =
      Make("    COLLATE_FUNCTION: targets_one_hot_default_collator\n    COLLATE_FUNCTION_PARAMS: {num_classes: 6}\n")
          .value();
  ASSERT_OK(source->StartEpoch(0, 0));
  ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());
  EXPECT_EQ(batch->targets.sizes(), (std::vector<int64_t>{16, 6}));
  EXPECT_EQ(batch->targets.scalar_type(), at::kLong);
  for (int row = 0; row < 16; ++row) {
    const int64_t label = batch->indices[row].item<int64_t>() % 5;
    EXPECT_EQ(batch->targets[row][label].item<int64_t>(), 1);
    EXPECT_EQ(batch->targets[row].sum().item<int64_t>(), 1 - 5);
  }
}

TEST_F(CollateTest, LabelsOfSeveralFiles_AreOneRowOfTargets) {
  const std::string folder = MakeTempDir("labels");
  std::ofstream shapes(folder + "/shape.txt");
  std::ofstream colours(folder + "/colour.txt");
  for (int i = 0; i < 60; ++i) {
    shapes << i % 2 << "\n";
    colours << 2 + i / 30 << "\n";
  }
  shapes.close();
  colours.close();
  const std::string files = absl::StrCat("    LABEL_SOURCES: [disk_filelist]\n    LABEL_PATHS: [[", folder,
                                         "/shape.txt, ", folder, "/colour.txt]]\n    DATASET_NAMES: []\n");
  EXPECT_THAT(Make(files), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("sample 0 has 2 labels, one from each file of LABEL_PATHS; expected "
                                              "OneHotEncode among TRANSFORMS")));
  const auto source =
      Make(files + "    TRANSFORMS: [{name: ToTensor}, {name: OneHotEncode, num_classes: 5}]\n", 2).value();
  EXPECT_EQ(source->Classes().value(), (std::vector<int64_t>{0, 1, 2, 3}));
  ASSERT_OK(source->StartEpoch(0, 0));
  ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());
  ASSERT_EQ(batch->targets.sizes(), (std::vector<int64_t>{16, 5}));
  for (int row = 0; row < 16; ++row) {
    const int64_t index = batch->indices[row].item<int64_t>();
    std::vector<int64_t> expected(5, 0);
    expected[index % 2] = expected[2 + index / 30] = 1;
    const int64_t* targets = batch->targets.const_data_ptr<int64_t>() + 5 * row;
    EXPECT_EQ(std::vector<int64_t>(targets, targets + 5), expected) << index;
  }
}

TEST_F(CollateTest, SeveralMixedViews_HaveNoTargets) {
  const auto source = Make(
                          "    COLLATE_FUNCTION: cutmixup_collator\n"
                          "    TRANSFORMS: [{name: ImgReplicatePil, num_times: 2}, {name: ToTensor}]\n")
                          .value();
  EXPECT_FALSE(source->has_labels());
  ASSERT_OK(source->StartEpoch(0, 0));
  ASSERT_OK_AND_ASSIGN(const Batch* batch, source->Next());
  EXPECT_EQ(batch->views.size(), 2u);
  EXPECT_FALSE(batch->targets.defined());
}

// The first values of the rows of a tensor.
std::vector<float> FirstValues(const at::Tensor& images) {
  std::vector<float> values;
  for (int64_t row = 0; row < images.size(0); ++row) values.push_back(images[row].flatten()[0].item<float>());
  return values;
}

TEST_F(CollateTest, SiameseViews_FollowOneAnotherSampleBySample) {
  const auto one = Make("").value();
  const auto joined = Make(
                          "    COLLATE_FUNCTION: siamese_collator\n"
                          "    TRANSFORMS: [{name: ImgReplicatePil, num_times: 3}, {name: ToTensor}]\n",
                          2)
                          .value();
  ASSERT_OK(one->StartEpoch(0, 2));
  ASSERT_OK(joined->StartEpoch(0, 2));
  for (const int64_t rows : {16, 12}) {  // the last batch is not full
    ASSERT_OK_AND_ASSIGN(const Batch* images, one->Next());
    ASSERT_OK_AND_ASSIGN(const Batch* batch, joined->Next());
    ASSERT_EQ(batch->size(), rows);
    ASSERT_EQ(batch->views.size(), 1u);
    ASSERT_EQ(batch->views[0].sizes(), (std::vector<int64_t>{3 * rows, 3, 12, 12}));
    EXPECT_EQ(batch->targets.sizes(), (std::vector<int64_t>{rows}));
    std::vector<float> expected;
    for (const float value : FirstValues(images->views[0])) expected.insert(expected.end(), 3, value);
    EXPECT_EQ(FirstValues(batch->views[0]), expected);
  }
}

constexpr char kPatches[] =
    "    COLLATE_FUNCTION: patch_and_image_collator\n"
    "    TRANSFORMS: [{name: ImgPilToPatchesAndImage, num_patches: 4, crop_size_image: 12, crop_size_patches: 50}, "
    "{name: ToTensor}]\n    INPUT_KEY_NAMES: ";

TEST_F(CollateTest, PatchesAndImages_AreNamedInputsOrOneOfThemIsTheBatch) {
  const auto both = Make(absl::StrCat(kPatches, "[patches, images]\n"), 2).value();
  ASSERT_OK(both->StartEpoch(0, 3));
  ASSERT_OK_AND_ASSIGN(const Batch* batch, both->Next());
  EXPECT_THAT(batch->views, IsEmpty());
  ASSERT_EQ(batch->named_inputs.size(), 2u);
  const at::Tensor images = batch->named_inputs.at("images");
  const at::Tensor patches = batch->named_inputs.at("patches");
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{12, 3, 12, 12}));
  EXPECT_EQ(patches.sizes(), (std::vector<int64_t>{48, 3, 4, 4}));
  EXPECT_EQ(batch->targets.sizes(), (std::vector<int64_t>{12}));

  for (const char* key : {"images", "patches"}) {
    const auto alone = Make(absl::StrCat(kPatches, "[", key, "]\n")).value();
    ASSERT_OK(alone->StartEpoch(0, 3));
    ASSERT_OK_AND_ASSIGN(const Batch* one, alone->Next());
    EXPECT_TRUE(one->named_inputs.empty());
    ASSERT_EQ(one->views.size(), 1u);
    EXPECT_EQ(FirstValues(one->views[0]), FirstValues(batch->named_inputs.at(key)));
  }
}

TEST_F(CollateTest, KeysThatACollatorDoesNotMake_AreRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Make("    INPUT_KEY_NAMES: [images]\n"),
              StatusIs(invalid, HasSubstr("run.yaml:9: config.DATA.TRAIN.INPUT_KEY_NAMES is [images], expected data, "
                                          "which COLLATE_FUNCTION default_collate makes")));
  for (const char* keys : {"[data]", "[images, images]", "[]", "[images, mask]"}) {
    EXPECT_THAT(Make(absl::StrCat(kPatches, keys, "\n")),
                StatusIs(invalid, HasSubstr("expected one or more of images, patches, which COLLATE_FUNCTION "
                                            "patch_and_image_collator makes")))
        << keys;
  }
  EXPECT_THAT(Make("    TARGET_KEY_NAMES: [label, label]\n"),
              StatusIs(invalid, HasSubstr("config.DATA.TRAIN.TARGET_KEY_NAMES has 2 names, expected [label]: no loss "
                                          "takes several targets; a list of files in LABEL_PATHS")));
  EXPECT_THAT(Make("    TARGET_KEY_NAMES: [data_idx]\n"),
              StatusIs(invalid, HasSubstr("config.DATA.TRAIN.TARGET_KEY_NAMES")));
}

TEST_F(CollateTest, OddBatches_AreRefusedBeforeTheRun) {
  const std::string mixed = "    COLLATE_FUNCTION: cutmixup_collator\n";
  EXPECT_THAT(Make(mixed + "    DATA_LIMIT: 61\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a batch has 13, expected an even number")));
  EXPECT_OK(Make(mixed + "    DATA_LIMIT: 61\n    DROP_LAST: True\n"));
  EXPECT_THAT(Make(mixed + "    BATCHSIZE_PER_REPLICA: 15\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a batch has 15, expected an even number")));
}

TEST_F(CollateTest, EvaluationsAndTestPhases_DoNotMix) {
  const std::string mixed = "    COLLATE_FUNCTION: cutmixup_collator\n";
  Configure(mixed);
  const ConfigNode& split = *config_.FindPath("DATA.TRAIN");
  EXPECT_THAT(MakeEvaluationSource(split, split, Context()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run.yaml:9: config.DATA.TRAIN.COLLATE_FUNCTION is cutmixup_collator, which mixes "
                                 "samples, but an evaluation looks at each by itself; expected default_collate")));
  EXPECT_THAT(MakeTestSource(split, Context()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but a test phase looks at each")));
}

}  // namespace
}  // namespace ssl
