// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/renumbered_source.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/batch.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// One batch with one sample of each of `numbers`.
class NamedSource : public BatchSource {
 public:
  NamedSource(std::vector<std::string> names, std::vector<int64_t> numbers)
      : names_(std::move(names)), numbers_(std::move(numbers)) {
    batch_.targets = at::tensor(numbers_, at::kLong);
    batch_.indices = at::tensor(numbers_, at::kLong);
  }

  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return static_cast<int64_t>(numbers_.size()); }
  absl::StatusOr<std::vector<int64_t>> Classes() const override { return numbers_; }
  std::vector<std::string> ClassNames() const override { return names_; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    given_ = false;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override { return std::exchange(given_, true) ? nullptr : &batch_; }

 private:
  const std::vector<std::string> names_;
  const std::vector<int64_t> numbers_;
  Batch batch_;
  bool given_ = false;
};

ConfigNode Folders() {
  return *ParseYaml("DATA: {TRAIN: {DATA_PATHS: [photos/train]}, TEST: {DATA_PATHS: [photos/val]}}", "run.yaml",
                    nullptr);
}

TEST(RenumberedSource, LabelsFollowTheNames) {
  const NamedSource train({"ant", "bee", "cat", "dog"}, {0, 1, 3});  // a limit has left no cat
  auto test = std::make_unique<NamedSource>(std::vector<std::string>{"cat", "dog"}, std::vector<int64_t>{0, 1});

  ASSERT_OK_AND_ASSIGN(const auto renumbered, NumberedAsInTraining(std::move(test), train, Folders()));

  ASSERT_OK(renumbered->StartEpoch(0, 0));
  ASSERT_OK_AND_ASSIGN(const Batch* batch, renumbered->Next());
  EXPECT_TRUE(at::equal(batch->targets, at::tensor({2, 3}, at::kLong))) << batch->targets;
  EXPECT_TRUE(at::equal(batch->indices, at::tensor({0, 1}, at::kLong))) << batch->indices;
  EXPECT_THAT(renumbered->Classes().value(), ElementsAre(2, 3));
  EXPECT_EQ(renumbered->ClassNames(), train.ClassNames());
  ASSERT_OK_AND_ASSIGN(batch, renumbered->Next());
  EXPECT_EQ(batch, nullptr);
}

TEST(RenumberedSource, EqualNames_AreTheSourceItself) {
  const NamedSource train({"ant", "bee"}, {0, 1});
  auto test = std::make_unique<NamedSource>(std::vector<std::string>{"ant", "bee"}, std::vector<int64_t>{1});
  const BatchSource* given = test.get();
  ASSERT_OK_AND_ASSIGN(const auto renumbered, NumberedAsInTraining(std::move(test), train, Folders()));
  EXPECT_EQ(renumbered.get(), given);
}

class UnlabelledSource : public NamedSource {
 public:
  UnlabelledSource() : NamedSource({}, {}) {}
  bool has_labels() const override { return false; }
};

TEST(RenumberedSource, WithoutLabels_AreTheSourceItself) {
  const NamedSource train({"ant", "bee"}, {0, 1});
  ASSERT_OK_AND_ASSIGN(auto test, NumberedAsInTraining(std::make_unique<UnlabelledSource>(), train, Folders()));
  EXPECT_FALSE(test->has_labels());
  // Numbers of classes stay as they are, whatever training has.
  test = std::make_unique<NamedSource>(std::vector<std::string>{}, std::vector<int64_t>{0, 1});
  const BatchSource* given = test.get();
  ASSERT_OK_AND_ASSIGN(test, NumberedAsInTraining(std::move(test), UnlabelledSource(), Folders()));
  EXPECT_EQ(test.get(), given);
}

TEST(RenumberedSource, NamesAgainstNoLabels_AreToldSo) {
  auto test = std::make_unique<NamedSource>(std::vector<std::string>{"ant"}, std::vector<int64_t>{0});
  EXPECT_THAT(NumberedAsInTraining(std::move(test), UnlabelledSource(), Folders()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("needs labels, but run.yaml:1: config.DATA.TRAIN.DATA_PATHS [photos/train] has "
                                       "none: config.DATA.TRAIN.LABEL_SOURCES is []"),
                             Not(HasSubstr("numbers")))));
}

TEST(RenumberedSource, ClassThatTrainingLacks_IsRefusedWithBothFolders) {
  const NamedSource train({"ant", "bee"}, {0, 1});
  auto test = std::make_unique<NamedSource>(std::vector<std::string>{"ant", "yak"}, std::vector<int64_t>{0, 1});
  EXPECT_THAT(NumberedAsInTraining(std::move(test), train, Folders()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("DATA.TEST.DATA_PATHS [photos/val]"), HasSubstr(": yak (1)"),
                             HasSubstr("DATA.TRAIN.DATA_PATHS [photos/train]"), HasSubstr("ant, bee (2)"))));
}

}  // namespace
}  // namespace ssl
