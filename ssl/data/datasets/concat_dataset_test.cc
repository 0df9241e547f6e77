// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/concat_dataset.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/datasets/array_dataset.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/datasets/label_table.h"
#include "ssl/data/datasets/labelled_dataset.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/sample.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Grey images of one pixel, first, first + 1, ...
std::unique_ptr<Dataset> Images(int first, int count, const std::string& name) {
  ImageArray array;
  array.count = count;
  array.height = array.width = 1;
  for (int i = 0; i < count; ++i) array.pixels.push_back(static_cast<uint8_t>(first + i));
  return ArrayDataset::Create(std::move(array), name).value();
}

std::unique_ptr<Dataset> Labelled(std::unique_ptr<Dataset> images, std::vector<int64_t> values,
                                  std::vector<std::string> names = {}, int64_t columns = 0) {
  LabelTable table;
  table.values = std::move(values);
  table.class_names = std::move(names);
  if (columns > 0) {
    table.kind = LabelTable::Kind::kRow;
    table.num_columns = columns;
  }
  return std::make_unique<LabelledDataset>(std::move(images), std::move(table));
}

std::unique_ptr<ConcatDataset> Join(std::unique_ptr<Dataset> a, std::unique_ptr<Dataset> b) {
  std::vector<std::unique_ptr<Dataset>> parts;
  parts.push_back(std::move(a));
  parts.push_back(std::move(b));
  return std::make_unique<ConcatDataset>(std::move(parts));
}

// Its first images cannot be read. It counts them by itself, as a host's data set may.
class PartlyBroken : public Dataset {
 public:
  PartlyBroken(int64_t size, int64_t num_broken)
      : size_(size), num_broken_(num_broken), broken_(size, 0.1, "MAX_BROKEN_FRACTION") {}
  int64_t size() const override { return size_; }
  bool has_labels() const override { return false; }
  std::string description() const override { return "partly broken"; }
  void WillRead(int64_t samples) override { broken_.WillRead(samples); }
  absl::Status Get(int64_t index, Sample* sample) const override {
    if (index < num_broken_) return broken_.AddBroken(index, ReadFault::kDamaged, absl::DataLossError("damaged"));
    broken_.AddGood(index);
    return absl::OkStatus();
  }

 private:
  const int64_t size_;
  const int64_t num_broken_;
  mutable BrokenImages broken_;
};

std::vector<int64_t> LabelsOf(const Dataset& dataset) {
  std::vector<int64_t> labels;
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    EXPECT_OK(dataset.Get(i, &sample));
    EXPECT_EQ(sample.label, dataset.Label(i));
    labels.push_back(sample.label);
  }
  return labels;
}

TEST(ConcatDataset, Samples_FollowOneAnother) {
  const auto dataset = Join(Images(10, 2, "a"), Images(50, 3, "b"));
  EXPECT_EQ(dataset->size(), 5);
  EXPECT_EQ(dataset->description(), "a + b");
  std::vector<int> pixels;
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < 5; ++i) {
    ASSERT_OK(dataset->Get(i, &sample));
    pixels.push_back(sample.view(0).image.pixels()[0]);
  }
  EXPECT_THAT(pixels, ElementsAre(10, 11, 50, 51, 52));
  EXPECT_EQ(dataset->SampleName(3), "sample 1 of b");
}

TEST(ConcatDataset, NumberedClasses_StayWhatTheyAre) {
  const auto dataset = Join(Labelled(Images(0, 2, "a"), {3, 0}), Labelled(Images(0, 2, "b"), {1, 3}));
  EXPECT_TRUE(dataset->has_labels());
  EXPECT_EQ(dataset->label_conflict(), "");
  EXPECT_THAT(LabelsOf(*dataset), ElementsAre(3, 0, 1, 3));
  EXPECT_THAT(dataset->ClassNames(), IsEmpty());
}

TEST(ConcatDataset, NamedClasses_AreOneByTheirNames) {
  const auto dataset = Join(Labelled(Images(0, 2, "a"), {0, 1}, {"cat", "dog"}),
                            Labelled(Images(0, 3, "b"), {2, 1, 0}, {"ant", "cat", "emu"}));
  EXPECT_THAT(dataset->ClassNames(), ElementsAre("ant", "cat", "dog", "emu"));
  EXPECT_THAT(LabelsOf(*dataset), ElementsAre(1, 2, 3, 1, 0));
}

TEST(ConcatDataset, RowsOfLabels_AreLent) {
  const auto dataset = Join(Labelled(Images(0, 1, "a"), {1, 0}, {}, 2), Labelled(Images(0, 1, "b"), {-1, 1}, {}, 2));
  Sample sample;
  sample.ResetViews(1);
  ASSERT_OK(dataset->Get(1, &sample));
  EXPECT_THAT(sample.label_row, ElementsAre(-1, 1));
  EXPECT_THAT(dataset->LabelRow(0), ElementsAre(1, 0));
}

TEST(ConcatDataset, ListsOfLabels_AreLent) {
  LabelTable table;
  table.kind = LabelTable::Kind::kList;
  table.num_columns = 2;
  table.values = {3, 0, 5, 3};
  auto several = std::make_unique<LabelledDataset>(Images(0, 2, "a"), std::move(table));
  const auto dataset = Join(std::move(several), Labelled(Images(0, 1, "b"), {5}));
  Sample sample;
  sample.ResetViews(1);
  ASSERT_OK(dataset->Get(1, &sample));
  EXPECT_THAT(sample.label_list, ElementsAre(5, 3));
  EXPECT_EQ(sample.label, -1);
  EXPECT_THAT(dataset->LabelList(0), ElementsAre(3, 0));
  ASSERT_OK(dataset->Get(2, &sample));
  EXPECT_EQ(sample.label, 5);
  EXPECT_THAT(sample.label_list, IsEmpty());
}

TEST(ConcatDataset, WithoutLabelsOfAll_ThereAreNone) {
  const auto dataset =
      Join(Labelled(Images(0, 1, "a"), {7}, {"a", "b", "c", "d", "e", "f", "g", "h"}), Images(0, 1, "b"));
  EXPECT_FALSE(dataset->has_labels());
  EXPECT_THAT(LabelsOf(*dataset), ElementsAre(-1, -1));
  EXPECT_THAT(dataset->ClassNames(), IsEmpty());
  EXPECT_THAT(dataset->label_conflict(), HasSubstr("b has none, a has some"));
  EXPECT_EQ(Join(Images(0, 1, "a"), Images(0, 1, "b"))->label_conflict(), "") << "nobody expects any";
}

TEST(ConcatDataset, ClassesThatCannotBeCompared_AreNoLabels) {
  const auto conflict = [](std::unique_ptr<Dataset> a, std::unique_ptr<Dataset> b) {
    const auto dataset = Join(std::move(a), std::move(b));
    EXPECT_FALSE(dataset->has_labels());
    EXPECT_THAT(LabelsOf(*dataset), ElementsAre(-1, -1));
    EXPECT_THAT(dataset->ClassNames(), IsEmpty());
    return dataset->label_conflict();
  };
  EXPECT_THAT(conflict(Labelled(Images(0, 1, "a"), {0}, {"cat"}), Labelled(Images(0, 1, "b"), {0})),
              HasSubstr("classes of a have names and those of b are numbers"));
  EXPECT_THAT(conflict(Labelled(Images(0, 1, "a"), {0}), Labelled(Images(0, 1, "b"), {0}, {"cat"})),
              HasSubstr("classes of b have names and those of a are numbers"));
  EXPECT_THAT(conflict(Labelled(Images(0, 1, "a"), {0}), Labelled(Images(0, 1, "b"), {0, 1}, {}, 2)),
              HasSubstr("b has 2 labels in a row and a has 0"));
}

// A tenth of all, of which the small part has two.
TEST(ConcatDataset, TwoBrokenOfASmallPart_AreFewOfAll) {
  const auto both = Join(std::make_unique<PartlyBroken>(100000, 0), std::make_unique<PartlyBroken>(20, 2));
  both->WillRead(10002);
  Sample sample;
  sample.ResetViews(1);
  EXPECT_OK(both->Get(100000, &sample));
  EXPECT_OK(both->Get(100001, &sample));
}

TEST(ConcatDataset, PartThatIsBroken_IsAnError) {
  const auto both = Join(std::make_unique<PartlyBroken>(100000, 0), std::make_unique<PartlyBroken>(50000, 50000));
  both->WillRead(300);
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < 19; ++i) EXPECT_OK(both->Get(100000 + i, &sample));
  EXPECT_THAT(both->Get(100019, &sample), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of the first 100,")));
}

}  // namespace
}  // namespace ssl
