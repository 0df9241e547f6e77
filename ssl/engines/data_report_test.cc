// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/data_report.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/data/read_fault.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

SurveyedImage Image(uint64_t content, uint64_t difference_hash, int height = 375, int width = 500) {
  SurveyedImage image;
  image.content = {1000, content, 0};
  image.height = height;
  image.width = width;
  image.channels = 3;
  image.difference_hash.emplace();
  image.difference_hash->bits = difference_hash;
  for (size_t i = 0; i < image.difference_hash->grey.size(); ++i) image.difference_hash->grey[i] = i;
  return image;
}

SurveyedImage Broken(ReadFault fault, const std::string& reason) {
  SurveyedImage image;
  image.fault = fault;
  image.reason = reason;
  return image;
}

DataDescription Names(size_t count) {
  DataDescription description;
  description.split = "TRAIN";
  description.source = "photos";
  for (size_t i = 0; i < count; ++i) description.names.push_back(absl::StrCat("photos/", i, ".jpg"));
  return description;
}

TEST(DataReport, Duplicates_ExactOnesCountOnceAmongTheNear) {
  const std::vector<SurveyedImage> images = {Image(1, 0xFF), Image(2, 0xFF00), Image(1, 0xFF), Image(3, 0xFB),
                                             Image(4, ~uint64_t{0})};
  const DataReport report = MakeDataReport(images, Names(5), {}).value();
  EXPECT_THAT(report.exact_duplicates, ElementsAre(ElementsAre(0, 2)));
  EXPECT_THAT(report.near_duplicates, ElementsAre(ElementsAre(0, 3)));
  EXPECT_EQ(NumRepetitions(report.exact_duplicates), 1);
}

TEST(DataReport, SearchForNearDuplicates_EndsWithAStop) {
  const std::vector<SurveyedImage> images = {Image(1, 0xFF), Image(2, 0xFF00)};
  StopToken stop;
  const auto stop_at_once = [&stop](int64_t) { stop.Request(kStopTerminate); };
  EXPECT_THAT(MakeDataReport(images, Names(2), {}, stop_at_once, &stop),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("near duplicates: stopped")));
}

TEST(DataReport, SearchForNearDuplicates_TellsHowFarItIs) {
  std::vector<SurveyedImage> images;
  for (uint64_t i = 0; i < 1000; ++i) images.push_back(Image(i / 2, i / 2 * 0x9E3779B97F4A7C15u));
  std::vector<int64_t> told;
  ASSERT_OK(MakeDataReport(images, Names(images.size()), {}, [&told](int64_t done) { told.push_back(done); }));
  ASSERT_GE(told.size(), 5u);
  EXPECT_LE(told.front(), 200);  // of five bands the first is not yet done
  EXPECT_EQ(told.back(), 1000);
}

TEST(DataReport, BrokenImages_AreNoDuplicatesAndHaveNoSize) {
  const std::vector<SurveyedImage> images = {Broken(ReadFault::kEmpty, "a: empty"), Image(1, 1),
                                             Broken(ReadFault::kEmpty, "b: empty"),
                                             Broken(ReadFault::kTruncated, "c: cut")};
  const DataReport report = MakeDataReport(images, Names(4), {}).value();
  EXPECT_EQ(report.num_broken(), 3);
  EXPECT_THAT(report.broken[static_cast<int>(ReadFault::kEmpty)], ElementsAre(0, 2));
  EXPECT_THAT(report.exact_duplicates, IsEmpty());
  EXPECT_THAT(report.tiny, IsEmpty());
  const std::string table = FormatDataReport(report, Names(4), images, {});
  EXPECT_THAT(table, AllOf(HasSubstr("a: empty; b: empty"), HasSubstr("truncated"), HasSubstr("no labels")));
}

TEST(DataReport, NamesOfStrangers_AreEscapedInTheTableOnly) {
  DataDescription description = Names(2);
  description.names = {"\x1B[31m\n18:00:00 I", "\xC3\xA4\xFF"};
  const std::vector<SurveyedImage> images = {Image(1, 1), Image(1, 1)};
  const DataReport report = MakeDataReport(images, description, {}).value();
  EXPECT_THAT(FormatDataReport(report, description, images, {}),
              HasSubstr("1   \\x1b[31m\\n18:00:00 I = \xC3\xA4\\xff\n"));
  EXPECT_EQ(DataReportTree(report, description, images).FindPath("exact_duplicates.0.0")->text(), description.names[0]);
}

TEST(DataReport, TinyAndHuge_ByTheLimits) {
  const DataReport report =
      MakeDataReport({Image(1, 1, 31, 500), Image(2, 2, 32, 500), Image(3, 3, 4001, 4000), Image(4, 4, 4000, 4000)},
                     Names(4), {})
          .value();
  EXPECT_THAT(report.tiny, ElementsAre(0));
  EXPECT_THAT(report.huge, ElementsAre(2));
}

TEST(DataReport, MeanAndStd_EachImageWeighsTheSame) {
  SurveyedImage black = Image(1, 1, 1000, 1000);
  SurveyedImage grey = Image(2, 2, 10, 10);
  grey.channels = 1;
  grey.mean = {0.5, 0, 0};
  grey.mean_square = {0.26, 0, 0};
  const DataReport report = MakeDataReport({black, grey}, Names(2), {}).value();
  EXPECT_THAT(report.mean, ElementsAre(0.25, 0.25, 0.25));
  EXPECT_THAT(report.std[2], DoubleNear(0.2598, 1e-4));  // sqrt(0.13 - 0.0625)
  EXPECT_THAT(
      FormatDataReport(report, Names(2), {black, grey}, {}),
      HasSubstr("        - name: Normalize\n          mean: [0.2500, 0.2500, 0.2500]\n          std: [0.2598, "));
}

TEST(DataReport, StdOfZero_IsNotProposed) {
  const std::vector<SurveyedImage> black = {Image(1, 1), Image(2, 2)};
  const DataReport report = MakeDataReport(black, Names(2), {}).value();
  EXPECT_THAT(
      FormatDataReport(report, Names(2), black, {}),
      AllOf(HasSubstr("std [0.0000, 0.0000, 0.0000]: where the std is 0, all pixels of a channel have the same"),
            Not(HasSubstr("name: Normalize"))));
}

TEST(DataReport, ImagesOf16Bits_AreCountedWithWhatBecomesOfThem) {
  std::vector<SurveyedImage> images = {Image(1, 1), Image(2, 2), Image(3, 4)};
  images[0].has_16_bits = images[2].has_16_bits = true;
  images[2].brightest = 200;
  DataDescription description = Names(3);
  description.of_16_bits = "values are divided by 256";
  DataReport report = MakeDataReport(images, description, {}).value();
  EXPECT_THAT(FormatDataReport(report, description, images, {}), HasSubstr("  2   values are divided by 256\n"));
  EXPECT_EQ(DataReportTree(report, description, images).FindPath("of_16_bits.1")->text(), "photos/2.jpg");
  images[2].brightest = 15;
  EXPECT_THAT(FormatDataReport(report, description, images, {}),
              HasSubstr("by 256; the brightest value is then 15 of 255, so that few levels are left"));
  images[0].has_16_bits = images[2].has_16_bits = false;
  report = MakeDataReport(images, description, {}).value();
  EXPECT_THAT(FormatDataReport(report, description, images, {}), Not(HasSubstr("16-bit")));
}

TEST(DataReport, NamesThatBeginOrEndWithABlank_HaveQuotes) {
  DataDescription description = Names(2);
  description.labels = {0, 1};
  description.class_names = {"c0", "c0 "};
  const std::vector<SurveyedImage> images = {Image(1, 1), Image(2, 2)};
  const DataReport report = MakeDataReport(images, description, {}).value();
  EXPECT_THAT(FormatDataReport(report, description, images, {}), HasSubstr("images: c0 1, 'c0 ' 1"));
}

TEST(DataReport, Classes_SmallestFirst) {
  DataDescription description = Names(4);
  description.labels = {0, 2, 2, 0};
  description.class_names = {"ant", "bee", "cat"};
  const std::vector<SurveyedImage> images = {Image(1, 1), Image(2, 2), Image(3, 4), Image(4, 8)};
  const DataReport report = MakeDataReport(images, description, {}).value();
  EXPECT_THAT(report.class_sizes, ElementsAre(Pair(0, 2), Pair(1, 0), Pair(2, 2)));
  EXPECT_THAT(FormatDataReport(report, description, images, {}), HasSubstr("images: bee 0, ant 2, cat 2"));
  EXPECT_EQ(DataReportTree(report, description, images).FindPath("classes.cat")->text(), "2");
}

// Numbers of products or people serve as classes, too.
TEST(DataReport, ClassesWithLargeNumbers_AreThoseThatOccur) {
  DataDescription description = Names(3);
  description.labels = {int64_t{1} << 60, 7, 7};
  const std::vector<SurveyedImage> images = {Image(1, 1), Image(2, 2), Image(3, 4)};
  const DataReport report = MakeDataReport(images, description, {}).value();
  EXPECT_THAT(report.class_sizes, ElementsAre(Pair(7, 2), Pair(int64_t{1} << 60, 1)));
  EXPECT_THAT(FormatDataReport(report, description, images, {}),
              AllOf(HasSubstr("classes                        2"),
                    HasSubstr("images: class 1152921504606846976 1, class 7 2")));
}

// As a host's own data set may have them.
TEST(DataReport, ClassBeyondTheNames_HasItsNumber) {
  DataDescription description = Names(2);
  description.labels = {0, 2};
  description.class_names = {"ant"};
  const std::vector<SurveyedImage> images = {Image(1, 1), Image(2, 2)};
  const DataReport report = MakeDataReport(images, description, {}).value();
  EXPECT_THAT(FormatDataReport(report, description, images, {}), HasSubstr("images: ant 1, class 2 1"));
  EXPECT_EQ(DataReportTree(report, description, images).FindPath("classes")->Find("class 2")->text(), "1");
}

std::string ClassLine(int64_t classes) {
  DataDescription description = Names(classes);
  std::vector<SurveyedImage> images;
  for (int64_t i = 0; i < classes; ++i) {
    description.labels.push_back(i);
    description.class_names.push_back(absl::StrCat("c", i));
    images.push_back(Image(i, uint64_t{1} << i));
  }
  return FormatDataReport(MakeDataReport(images, description, {}).value(), description, images, {});
}

TEST(DataReport, Classes_DotsStandForThoseThatAreLeftOut) {
  EXPECT_THAT(ClassLine(6), HasSubstr("images: c0 1, c1 1, c2 1, c3 1, c4 1, c5 1\n"));
  EXPECT_THAT(ClassLine(7), HasSubstr("images: c0 1, c1 1, c2 1, c3 1, c4 1, ... c6 1\n"));
}

TEST(DataReport, OneImage_IsNoPlural) {
  const std::vector<SurveyedImage> images = {Image(1, 1)};
  EXPECT_THAT(FormatDataReport(MakeDataReport(images, Names(1), {}).value(), Names(1), images, {}),
              HasSubstr("TRAIN: photos, 1 image, "));
}

TEST(DataReport, SharedContent_IsThatOfReadableImages) {
  EXPECT_THAT(SharedContent({Image(1, 1), Broken(ReadFault::kEmpty, "")},
                            {Broken(ReadFault::kEmpty, ""), Image(2, 1), Image(1, 9)}),
              ElementsAre(2));
}

TEST(DataReport, NothingReadable_HasNoMean) {
  const DataReport report = MakeDataReport({Broken(ReadFault::kEmpty, "a")}, Names(1), {}).value();
  EXPECT_THAT(report.mean, IsEmpty());
}

}  // namespace
}  // namespace ssl
