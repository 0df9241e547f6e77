// SPDX-License-Identifier: Apache-2.0
//
// Collators at work in a loader, as configurations build them.
#include <cstdint>
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

namespace ssl {
namespace {

using ::testing::HasSubstr;

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
