// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/class_sampler_builder.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One pixel each.
std::unique_ptr<Dataset> WithLabels(std::vector<int64_t> labels, int64_t count) {
  ImageArray array;
  array.count = count;
  array.height = array.width = 1;
  array.pixels.resize(count);
  array.labels = std::move(labels);
  return ArrayDataset::Create(std::move(array), "images").value();
}

std::unique_ptr<Dataset> FourClasses() {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 40; ++i) labels.push_back(i % 4 * 10);  // 0, 10, 20, 30
  return WithLabels(std::move(labels), 40);
}

DataSplitOptions Stratified(int64_t classes, int64_t batch_size) {
  DataSplitOptions split;
  split.stratified_sampler.enabled = true;
  split.stratified_sampler.classes_per_batch = classes;
  split.stratified_sampler.step_per_epoch = 7;
  split.batch_size_per_replica = batch_size;
  return split;
}

std::string PlaceOf(absl::string_view key) { return absl::StrCat("run.yaml:3: config.DATA.TRAIN.", key); }

absl::StatusOr<std::unique_ptr<Sampler>> Build(const DataSplitOptions& split, const RankSeed& rank_seed = {}) {
  return BuildClassSampler(split, *FourClasses(), rank_seed, PlaceOf);
}

TEST(ClassSamplerBuilder, NeitherAskedFor_IsNull) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Sampler> sampler, Build(DataSplitOptions()));
  EXPECT_EQ(sampler, nullptr);
}

TEST(ClassSamplerBuilder, Stratified_MakesWholePassesOfAboutTheSteps) {
  // 4 classes, 2 to a batch: a pass has 2 batches, and 7 steps hold 3 passes, or 24 samples.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Sampler> sampler, Build(Stratified(2, 4)));
  ASSERT_NE(sampler, nullptr);
  const std::vector<int64_t> indices = sampler->Indices(0);
  ASSERT_EQ(indices.size(), 24u);
  for (size_t batch = 0; batch < 24; batch += 4) {
    EXPECT_EQ(indices[batch] % 4, indices[batch + 2] % 4);
    EXPECT_NE(indices[batch] % 4, indices[batch + 1] % 4);
  }
}

TEST(ClassSamplerBuilder, UniqueClasses_AreDividedAmongTheRanks) {
  DataSplitOptions split = Stratified(4, 4);
  split.stratified_sampler.unique_classes = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Sampler> sampler, Build(split, {2, 1, 0}));
  const std::vector<int64_t> indices = sampler->Indices(0);
  EXPECT_EQ(indices.size(), 28u) << "7 batches of one pass each";
  EXPECT_EQ(indices[0] % 4, indices[2] % 4) << "2 classes of 2 samples each";
}

TEST(ClassSamplerBuilder, NumbersThatDoNotFit_AreNamed) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Build(Stratified(3, 6)),
              StatusIs(invalid, HasSubstr("run.yaml:3: config.DATA.TRAIN.STRATIFIED_SAMPLER.CLASSES_PER_BATCH is 3, "
                                          "expected a divisor of 4, the number of classes")));
  EXPECT_THAT(Build(Stratified(8, 8)), StatusIs(invalid, HasSubstr("a divisor of 4")));
  EXPECT_THAT(Build(Stratified(2, 5)), StatusIs(invalid, HasSubstr("to divide BATCHSIZE_PER_REPLICA, 5")));
  EXPECT_THAT(Build(Stratified(2, 12), {2, 0, 0}),
              StatusIs(invalid, AllOf(HasSubstr("at most 10 samples of a class"), HasSubstr("12 of all ranks"))));
  DataSplitOptions unique = Stratified(1, 4);
  unique.stratified_sampler.unique_classes = true;
  EXPECT_THAT(Build(unique, {2, 0, 0}), StatusIs(invalid, HasSubstr("a multiple of 2, the number of ranks")));
}

TEST(ClassSamplerBuilder, PowerLaw_HasBatchesOfOnePass) {
  DataSplitOptions split;
  split.power_law_sampler.enabled = true;
  split.batch_size_per_replica = 6;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Sampler> sampler, Build(split));
  EXPECT_EQ(sampler->size(), 36);
}

TEST(ClassSamplerBuilder, DataWithoutClasses_IsRefused) {
  DataSplitOptions split;
  split.power_law_sampler.enabled = true;
  split.batch_size_per_replica = 1;
  EXPECT_THAT(
      BuildClassSampler(split, *WithLabels({}, 3), {}, PlaceOf),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("config.DATA.TRAIN.POWER_LAW_SAMPLER.ENABLED is True, but sample 0 of images has no")));
}

}  // namespace
}  // namespace ssl
