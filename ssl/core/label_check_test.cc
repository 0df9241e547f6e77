// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/label_check.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/core/target_columns.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Says what a test sets.
class LabelSource : public BatchSource {
 public:
  explicit LabelSource(std::vector<int64_t> classes, std::vector<std::string> names = {})
      : classes_(std::move(classes)), names_(std::move(names)) {}

  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return 1; }
  bool has_labels() const override { return labelled; }
  absl::StatusOr<std::vector<int64_t>> Classes() const override {
    return failure.ok() ? absl::StatusOr<std::vector<int64_t>>(classes_) : failure;
  }
  std::vector<std::string> ClassNames() const override { return names_; }
  absl::Status StartEpoch(int64_t, int64_t) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override { return nullptr; }

  bool labelled = true;
  absl::Status failure;

 private:
  const std::vector<int64_t> classes_;
  const std::vector<std::string> names_;
};

class LabelMethod : public Method {
 public:
  absl::Status ComputeLoss(StepContext&) override { return absl::OkStatus(); }
  bool needs_labels() const override { return needs; }
  bool labels_are_classes() const override { return are_classes; }
  int64_t ignored_label() const override { return ignored; }

  bool needs = true;
  bool are_classes = true;
  int64_t ignored = -1;
};

ConfigNode Config(const std::string& yaml) { return *ParseYaml(yaml, "run.yaml", nullptr); }

constexpr char kRun[] = R"(LOSS: {name: cross_entropy}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [8, 3]}]]}}
DATA:
  TRAIN:
    DATA_PATHS: [photos]
    DATA_SOURCES: [disk_filelist]
    LABEL_SOURCES: []
)";

absl::Status Below(int64_t limit, const BatchSource& source, int64_t ignored = -1, const std::string& yaml = kRun) {
  return CheckClassesBelow(limit, "the outputs", ignored, "TRAIN", source, Config(yaml));
}

TEST(CheckHasLabelsTest, SourceWithoutLabels_IsNamedWithItsKeyAndTheWaysOut) {
  LabelSource source({0, 1});
  EXPECT_OK(CheckHasLabels("it needs labels", "TRAIN", source, Config(kRun)));
  source.labelled = false;
  EXPECT_THAT(CheckHasLabels("it needs labels", "TRAIN", source, Config(kRun)),
              StatusIs(kInvalid, AllOf(StartsWith("it needs labels, but run.yaml:5: config.DATA.TRAIN.DATA_PATHS "
                                                  "[photos] has none: run.yaml:7: config.DATA.TRAIN.LABEL_SOURCES"),
                                       HasSubstr("LABEL_PATHS"), HasSubstr("RANDOM_SYNTHETIC_LABELS"))));
}

TEST(CheckHasLabelsTest, PlaceOfTheData_IsTheFirstThatIsNamed) {
  LabelSource source({0});
  source.labelled = false;
  const auto error = [&source](const std::string& yaml) {
    return std::string(CheckHasLabels("x", "TRAIN", source, Config(yaml)).message());
  };
  EXPECT_THAT(error("DATA: {TRAIN: {DATA_PATHS: [], DATA_SOURCES: [synthetic]}}"),
              StartsWith("x, but run.yaml:1: config.DATA.TRAIN.DATA_SOURCES [synthetic] has none"));
  EXPECT_THAT(error("DATA: {TRAIN: {DATA_PATHS: [photos, list.txt], DATA_SOURCES: [disk_folder, disk_filelist]}}"),
              StartsWith("x, but run.yaml:1: config.DATA.TRAIN.DATA_PATHS [photos, list.txt] do not all have them, or "
                         "not of one kind: "));
  EXPECT_THAT(error("DATA: {TRAIN: {}}"), StartsWith("x, but config.DATA.TRAIN has none: "
                                                     "config.DATA.TRAIN.LABEL_SOURCES is []"));
}

TEST(CheckClassesBelowTest, LargestClass_DecidesAndIsNamed) {
  EXPECT_OK(Below(3, LabelSource({0, 1, 2})));
  EXPECT_OK(Below(3, LabelSource(std::vector<int64_t>())));
  EXPECT_THAT(Below(2, LabelSource({0, 2})),
              StatusIs(kInvalid,
                       "run.yaml:5: config.DATA.TRAIN.DATA_PATHS [photos] has label 2, expected labels below "
                       "2, the outputs"));
  EXPECT_THAT(Below(2, LabelSource({0, 2}, {"ant", "bee", "cat"})), StatusIs(kInvalid, HasSubstr("label 2 (cat), ")));
  EXPECT_THAT(Below(2, LabelSource({0, 2}, {"ant"})), StatusIs(kInvalid, HasSubstr("has label 2, ")))
      << "a name that is not there";
}

TEST(CheckClassesBelowTest, IgnoredNumber_DoesNotCountWhereverItLies) {
  EXPECT_OK(Below(2, LabelSource({0, 1, 255}), /*ignored=*/255));
  EXPECT_OK(Below(2, LabelSource({-1, 0, 1})));
  EXPECT_OK(Below(2, LabelSource({255}), /*ignored=*/255));
  EXPECT_THAT(Below(2, LabelSource({0, 200, 255}), /*ignored=*/255), StatusIs(kInvalid, HasSubstr("label 200, ")));
}

TEST(CheckClassesBelowTest, SourceThatCannotTell_Passes_AndOneThatFailsDoesNot) {
  LabelSource source({5});
  source.failure = absl::UnimplementedError("cannot tell");
  EXPECT_OK(Below(1, source));
  source.failure = absl::DataLossError("labels.npy is cut off");
  EXPECT_THAT(Below(1, source), StatusIs(absl::StatusCode::kDataLoss, "labels.npy is cut off"));
}

TEST(CheckClassesBelowTest, WhereLabelsComeFrom_IsSaid) {
  const LabelSource source({7});
  EXPECT_THAT(Below(1, source, -1, "DATA: {TRAIN: {LABEL_PATHS: [labels.txt], DATA_PATHS: [photos]}}"),
              StatusIs(kInvalid, StartsWith("run.yaml:1: config.DATA.TRAIN.LABEL_PATHS [labels.txt] has label 7,")));
  EXPECT_THAT(Below(1, source, -1, "DATA: {TRAIN: {LABEL_TYPE: sample_index}}"),
              StatusIs(kInvalid, HasSubstr("label 7 by LABEL_TYPE sample_index,")));
  EXPECT_THAT(Below(1, source, -1, "DATA: {TRAIN: {LABEL_TYPE: standard}}"),
              StatusIs(kInvalid, Not(HasSubstr("LABEL_TYPE"))));
}

// As the loader with a collator that mixes samples.
class ColumnSource : public LabelSource, public TargetColumns {
 public:
  explicit ColumnSource(int64_t columns) : LabelSource({0, 1}), columns_(columns) {}
  int64_t target_columns() const override { return columns_; }

 private:
  const int64_t columns_;
};

TEST(CheckLabelsTest, TargetsOfACollator_HaveAColumnForEachOutput) {
  const LabelMethod method;
  EXPECT_OK(CheckLabels(method, "TRAIN", ColumnSource(3), Config(kRun)));
  EXPECT_OK(CheckLabels(method, "TRAIN", ColumnSource(0), Config(kRun)));
  for (const int64_t columns : {2, 1000}) {
    EXPECT_THAT(CheckLabels(method, "TRAIN", ColumnSource(columns), Config(kRun)),
                StatusIs(kInvalid, AllOf(HasSubstr(absl::StrCat("makes targets of ", columns, " classes, expected 3,")),
                                         HasSubstr("COLLATE_FUNCTION_PARAMS.num_classes"))));
  }
}

TEST(CheckLabelsTest, MethodSaysWhatItNeeds) {
  LabelMethod method;
  LabelSource source({0, 5});
  source.labelled = false;
  EXPECT_THAT(
      CheckLabels(method, "TRAIN", source, Config(kRun)),
      StatusIs(kInvalid, StartsWith("run.yaml:1: config.LOSS.name is cross_entropy, which needs labels, but ")));
  method.needs = false;
  EXPECT_OK(CheckLabels(method, "TRAIN", source, Config(kRun)));

  method.needs = true;
  source.labelled = true;
  EXPECT_THAT(CheckLabels(method, "TRAIN", source, Config(kRun)),
              StatusIs(kInvalid, AllOf(HasSubstr("has label 5, expected labels below 3"),
                                       EndsWith("the outputs of config.MODEL.HEAD.PARAMS (run.yaml:2)"))));
  method.ignored = 5;
  EXPECT_OK(CheckLabels(method, "TRAIN", source, Config(kRun)));
  method.ignored = -1;
  method.are_classes = false;
  EXPECT_OK(CheckLabels(method, "TRAIN", source, Config(kRun)));
}

TEST(CheckLabelsTest, OutputsThatTheConfigurationDoesNotTell_AreNotCompared) {
  EXPECT_OK(CheckLabels(LabelMethod(), "TRAIN", LabelSource({0, 500}),
                        Config("{LOSS: {name: x}, MODEL: {HEAD: {PARAMS: [[own_head, {}]]}}}")));
}

}  // namespace
}  // namespace ssl
