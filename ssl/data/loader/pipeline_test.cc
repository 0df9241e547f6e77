// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/pipeline.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/image/image.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Dataset> ThreeImages(bool labels) {
  ImageArray array;
  array.count = 3;
  array.height = array.width = 1;
  array.pixels = {10, 20, 30};
  if (labels) array.labels = {7, 8, 9};
  return ArrayDataset::Create(std::move(array), "three images").value();
}

// Records one random number for each of two views.
class RecordRandom : public Transform {
 public:
  explicit RecordRandom(std::vector<uint32_t>* draws) : draws_(draws) {}
  absl::string_view name() const override { return "RecordRandom"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override {
    for (int v = 0; v < 2; ++v) draws_->push_back(context.Random(v).Next());
    return absl::OkStatus();
  }

 private:
  std::vector<uint32_t>* draws_;
};

class Fail : public Transform {
 public:
  absl::string_view name() const override { return "Fail"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override {
    return absl::InvalidArgumentError("image is too dark");
  }
};

// Labels every sample with its index modulo 2.
class GiveLabel : public Transform {
 public:
  absl::string_view name() const override { return "GiveLabel"; }
  int64_t num_label_classes() const override { return 2; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override {
    sample->label = sample->index % 2;
    return absl::OkStatus();
  }
};

TEST(Pipeline, LabelsOfATransform_ReplaceThoseOfTheDataSet) {
  for (const bool labels : {false, true}) {
    std::vector<std::unique_ptr<Transform>> transforms;
    transforms.push_back(std::make_unique<GiveLabel>());
    const Pipeline pipeline(ThreeImages(labels), std::move(transforms), LabelType::kStandard, 0);
    EXPECT_TRUE(pipeline.has_labels());
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> classes, pipeline.Classes());
    EXPECT_THAT(classes, ElementsAre(0, 1));
    EXPECT_THAT(pipeline.ClassNames(), IsEmpty());
    PipelineScratch scratch;
    ASSERT_OK(pipeline.Read(0, 1, &scratch));
    EXPECT_EQ(scratch.sample.label, 1);
  }
}

TEST(Pipeline, Read_LendsThePixelsAndSetsLabelAndIndex) {
  const Pipeline pipeline(ThreeImages(true), {}, LabelType::kStandard, 0);
  PipelineScratch scratch;

  ASSERT_OK(pipeline.Read(0, 2, &scratch));

  EXPECT_EQ(scratch.sample.num_views(), 1);
  EXPECT_EQ(scratch.sample.view(0).image.pixels()[0], 30);
  EXPECT_EQ(scratch.sample.label, 9);
  EXPECT_EQ(scratch.sample.index, 2);
}

// A host's data set: image 0 is whole, the next ones are what no transform can work on.
class OddImages : public Dataset {
 public:
  int64_t size() const override { return 6; }
  bool has_labels() const override { return false; }
  std::string description() const override { return "odd images"; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    Image& image = sample->view(0).image;
    if (index == 1) return absl::OkStatus();  // the image is left as it is
    const int shapes[][3] = {{2, 2, 3}, {}, {0, 5, 3}, {2, 2, 2}, {2, 2, 4}, {-1, -1, 3}};
    image.Borrow(pixels_, shapes[index][0], shapes[index][1], shapes[index][2]);
    return absl::OkStatus();
  }

 private:
  const uint8_t pixels_[16] = {};
};

TEST(Pipeline, ImagesThatNoTransformCanWorkOn_AreErrorsOfTheDataSet) {
  const Pipeline pipeline(std::make_unique<OddImages>(), {}, LabelType::kStandard, 1);
  PipelineScratch scratch;
  const std::string said[] = {"0 x 0 pixels and 0", "5 x 0 pixels and 3", "2 x 2 pixels and 2", "2 x 2 pixels and 4",
                              "-1 x -1 pixels and 3"};
  for (int64_t index = 1; index < 6; ++index) {
    ASSERT_OK(pipeline.Read(0, 0, &scratch));
    EXPECT_THAT(
        pipeline.Read(0, index, &scratch),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(absl::StrCat("sample ", index, " of odd images")), HasSubstr(said[index - 1]))));
  }
}

TEST(Pipeline, LabelTypes_ReplaceTheLabel) {
  PipelineScratch scratch;
  const Pipeline index(ThreeImages(false), {}, LabelType::kSampleIndex, 0);
  ASSERT_OK(index.Read(0, 1, &scratch));
  EXPECT_EQ(scratch.sample.label, 1);
  EXPECT_TRUE(index.has_labels());

  const Pipeline zero(ThreeImages(true), {}, LabelType::kZero, 0);
  ASSERT_OK(zero.Read(0, 1, &scratch));
  EXPECT_EQ(scratch.sample.label, 0);

  const Pipeline none(ThreeImages(false), {}, LabelType::kStandard, 0);
  ASSERT_OK(none.Read(0, 1, &scratch));
  EXPECT_EQ(scratch.sample.label, -1);
  EXPECT_FALSE(none.has_labels());
}

// Three images, of which some are replaced.
class BrokenDataset : public Dataset {
 public:
  explicit BrokenDataset(std::set<int64_t> broken) : dataset_(ThreeImages(true)), broken_(std::move(broken)) {}

  int64_t size() const override { return dataset_->size(); }
  bool has_labels() const override { return true; }
  std::string description() const override { return "broken"; }
  absl::Status Get(int64_t index, Sample* sample) const override {
    if (broken_.count(index) > 0) sample->fault = ReadFault::kDamaged;
    return dataset_->Get(index, sample);
  }

 private:
  std::unique_ptr<Dataset> dataset_;
  std::set<int64_t> broken_;
};

TEST(Pipeline, BrokenSample_KeepsItsPlaceOrIsReplaced) {
  PipelineScratch scratch;
  Pipeline pipeline(std::make_unique<BrokenDataset>(std::set<int64_t>{2, 0}), {}, LabelType::kStandard, 0);
  ASSERT_OK(pipeline.Read(0, 2, &scratch));
  EXPECT_EQ(scratch.sample.index, 2);
  EXPECT_EQ(scratch.sample.fault, ReadFault::kDamaged);

  pipeline.set_replacement(Replacement::kSample);
  ASSERT_OK(pipeline.Read(0, 2, &scratch));
  EXPECT_EQ(scratch.sample.index, 1) << "2 and 0 are broken";
  EXPECT_EQ(scratch.sample.label, 8);
  EXPECT_EQ(scratch.sample.view(0).image.pixels()[0], 20);
  EXPECT_EQ(scratch.sample.fault, ReadFault::kDamaged) << "of the one that was asked for";
  ASSERT_OK(pipeline.Read(0, 1, &scratch));
  EXPECT_EQ(scratch.sample.fault, ReadFault::kNone);

  pipeline.set_replacement(Replacement::kImage);
  ASSERT_OK(pipeline.Read(0, 2, &scratch));
  EXPECT_EQ(scratch.sample.index, 2);
  EXPECT_EQ(scratch.sample.label, 9);
  EXPECT_EQ(scratch.sample.view(0).image.pixels()[0], 20);
  EXPECT_EQ(scratch.sample.fault, ReadFault::kDamaged);

  Pipeline all(std::make_unique<BrokenDataset>(std::set<int64_t>{0, 1, 2}), {}, LabelType::kStandard, 0);
  all.set_replacement(Replacement::kSample);
  ASSERT_OK(all.Read(0, 2, &scratch));
  EXPECT_EQ(scratch.sample.fault, ReadFault::kDamaged);
}

// Tells the rows it is made of, and refuses to read an image.
class ManyLabels : public Dataset {
 public:
  explicit ManyLabels(std::vector<std::vector<int64_t>> rows) : rows_(std::move(rows)) {}

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  bool has_labels() const override { return true; }
  std::string description() const override { return "many labels"; }
  absl::Status Get(int64_t index, Sample* sample) const override { return absl::InternalError("an image was read"); }
  absl::Span<const int64_t> LabelRow(int64_t index) const override { return rows_[index]; }

 private:
  std::vector<std::vector<int64_t>> rows_;
};

std::vector<int64_t> ClassesOf(std::unique_ptr<Dataset> dataset, LabelType label_type) {
  return Pipeline(std::move(dataset), {}, label_type, 0).Classes().value();
}

TEST(Pipeline, Classes_AreThoseOfTheSamplesInAscendingOrder) {
  ImageArray array;
  array.count = 6;
  array.height = array.width = 1;
  array.pixels = {1, 2, 3, 4, 5, 6};
  array.labels = {9, 2, 9, 0, -1, 2};
  EXPECT_THAT(ClassesOf(ArrayDataset::Create(std::move(array), "six images").value(), LabelType::kStandard),
              ElementsAre(0, 2, 9));
}

TEST(Pipeline, ClassesOfOtherLabelTypes_AreWhatReadSays) {
  EXPECT_THAT(ClassesOf(ThreeImages(true), LabelType::kSampleIndex), ElementsAre(0, 1, 2));
  EXPECT_THAT(ClassesOf(ThreeImages(false), LabelType::kZero), ElementsAre(0));
}

TEST(Pipeline, ClassesOfSeveralLabels_AreTheirUnion) {
  auto dataset = std::make_unique<ManyLabels>(std::vector<std::vector<int64_t>>{{0, 1, 0, -1}, {1, 1, -1, 0}});
  EXPECT_THAT(ClassesOf(std::move(dataset), LabelType::kStandard), ElementsAre(0, 1));
  EXPECT_THAT(ClassesOf(std::make_unique<ManyLabels>(std::vector<std::vector<int64_t>>{{0, -1}}), LabelType::kStandard),
              IsEmpty());
}

// Each sample has the classes of two files.
class TwoLabelFiles : public ManyLabels {
 public:
  using ManyLabels::ManyLabels;
  absl::Span<const int64_t> LabelRow(int64_t index) const override { return {}; }
  absl::Span<const int64_t> LabelList(int64_t index) const override { return ManyLabels::LabelRow(index); }
};

TEST(Pipeline, ClassesOfSeveralLabelFiles_AreTheirUnion) {
  auto dataset = std::make_unique<TwoLabelFiles>(std::vector<std::vector<int64_t>>{{3, 0}, {7, 3}});
  EXPECT_THAT(ClassesOf(std::move(dataset), LabelType::kStandard), ElementsAre(0, 3, 7));
}

TEST(Pipeline, ClassesThatNobodyTells_AreUnimplemented) {
  EXPECT_THAT(Pipeline(ThreeImages(false), {}, LabelType::kStandard, 0).Classes(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("three images tells no classes without reading its images")));
}

TEST(Pipeline, RandomStreams_DifferBySeedEpochSampleViewAndOperation) {
  std::vector<uint32_t> draws;
  for (uint64_t seed : {0, 1}) {
    std::vector<std::unique_ptr<Transform>> transforms;
    transforms.push_back(std::make_unique<RecordRandom>(&draws));
    transforms.push_back(std::make_unique<RecordRandom>(&draws));
    const Pipeline pipeline(ThreeImages(true), std::move(transforms), LabelType::kStandard, seed);
    PipelineScratch scratch;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      for (int64_t index = 0; index < 3; ++index) ASSERT_OK(pipeline.Read(epoch, index, &scratch));
    }
  }
  const std::set<uint32_t> distinct(draws.begin(), draws.end());
  EXPECT_EQ(draws.size(), 2u * 3 * 3 * 2 * 2);
  EXPECT_EQ(distinct.size(), draws.size());
}

TEST(Pipeline, RandomStreams_DoNotDependOnWhatWasReadBefore) {
  std::vector<uint32_t> draws;
  std::vector<std::unique_ptr<Transform>> transforms;
  transforms.push_back(std::make_unique<RecordRandom>(&draws));
  const Pipeline pipeline(ThreeImages(true), std::move(transforms), LabelType::kStandard, 5);
  PipelineScratch used;
  PipelineScratch fresh;
  ASSERT_OK(pipeline.Read(0, 0, &used));
  ASSERT_OK(pipeline.Read(4, 1, &used));
  ASSERT_OK(pipeline.Read(4, 1, &fresh));

  ASSERT_EQ(draws.size(), 6u);
  EXPECT_EQ(draws[2], draws[4]);
  EXPECT_EQ(draws[3], draws[5]);
}

TEST(Pipeline, FailingTransform_NamesSampleDataSetAndTransform) {
  std::vector<std::unique_ptr<Transform>> transforms;
  transforms.push_back(std::make_unique<Fail>());
  const Pipeline pipeline(ThreeImages(true), std::move(transforms), LabelType::kStandard, 0);
  PipelineScratch scratch;

  EXPECT_THAT(pipeline.Read(0, 1, &scratch),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sample 1 of three images: transform 0, 'Fail': image is too dark")));
}

}  // namespace
}  // namespace ssl
