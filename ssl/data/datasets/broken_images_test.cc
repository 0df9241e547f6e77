// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/broken_images.h"
#include "ssl/testing/captured_log.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Reason(int number) { return absl::DataLossError(absl::StrCat("/data/", number, ".jpg: damaged")); }

TEST(BrokenImages, FirstFew_AreNamed_ThenOnlyCounted) {
  const CapturedLog log;
  {
    BrokenImages images(1000000, 0.5, "MAX_BROKEN_FRACTION");
    for (int i = 1000; i < 1900; ++i) images.AddGood(i);
    for (int i = 0; i < 150; ++i) {
      EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(i)));
      if (i % 10 == 0) images.AddGood(1000);
    }
    ASSERT_EQ(log.lines.size(), 7u);
    EXPECT_EQ(images.broken(), 150);
  }
  EXPECT_EQ(log.lines[0], "image cannot be read and is replaced: /data/0.jpg: damaged");
  EXPECT_EQ(log.lines[5], "this process tried 910 images, 10 of which cannot be read: 10 damaged");
  EXPECT_EQ(log.lines[6], "this process tried 1000 images, 100 of which cannot be read: 100 damaged");
  ASSERT_EQ(log.lines.size(), 8u);
  EXPECT_EQ(log.lines[7], "this process tried 1050 images, 150 of which cannot be read: 150 damaged") << "at the end";
}

TEST(BrokenImages, NoneBroken_IsSilent) {
  const CapturedLog log;
  { BrokenImages(10, 0.5, "MAX_BROKEN_FRACTION").AddGood(3); }
  EXPECT_TRUE(log.lines.empty());
}

TEST(BrokenImages, Kinds_AreCountedApart) {
  BrokenImages images(100, 1.0, "MAX_BROKEN_FRACTION");
  int64_t index = 0;
  for (const ReadFault fault : kKindsOfBroken) EXPECT_OK(images.AddBroken(index++, fault, Reason(0)));
  EXPECT_OK(images.AddBroken(index, ReadFault::kEmpty, Reason(0)));
  EXPECT_EQ(images.Summary(),
            "this process tried 9 images, 9 of which cannot be read: 1 missing, 1 unreadable, 2 empty, 1 truncated, "
            "1 damaged, 1 not an image, 1 unsupported, 1 too large");
}

// The loader reads the first image once more than the others, and every epoch reads all.
TEST(BrokenImages, ImageThatIsReadAgain_CountsOnce) {
  BrokenImages images(10, 0.2, "MAX_BROKEN_FRACTION");
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (int64_t i = 0; i < 8; ++i) images.AddGood(i);
    for (int64_t i = 8; i < 10; ++i) EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(static_cast<int>(i))));
  }
  EXPECT_EQ(images.Summary(), "this process tried 10 images, 2 of which cannot be read: 2 damaged");
}

TEST(BrokenImages, GoodOneThatBreaksLater_Counts) {
  BrokenImages images(10, 0.1, "MAX_BROKEN_FRACTION");
  for (int64_t i = 0; i < 10; ++i) images.AddGood(i);
  EXPECT_OK(images.AddBroken(3, ReadFault::kDamaged, Reason(3)));
  images.AddGood(3);
  EXPECT_EQ(images.Summary(), "this process tried 10 images, 1 of which cannot be read: 1 damaged");
}

TEST(BrokenImages, TooManyAmongTheFirst_AreAnError) {
  BrokenImages images(1000000, 0.1, "run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION");
  for (int i = 0; i < 100; ++i) EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(i)));
  EXPECT_THAT(images.AddBroken(100, ReadFault::kDamaged, Reason(100)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("101 of the first 101 images cannot be read"),
                             HasSubstr("run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION allows a share of 0.1"),
                             HasSubstr("the last one: /data/100.jpg: damaged"))));
}

TEST(BrokenImages, AfterTheFirstThousand_NothingIsAnError) {
  BrokenImages images(1000000, 0.0, "MAX_BROKEN_FRACTION");
  for (int64_t i = 0; i < BrokenImages::kWindow; ++i) images.AddGood(i);
  EXPECT_OK(images.AddBroken(BrokenImages::kWindow, ReadFault::kDamaged, Reason(0)));
}

// The disk is gone in the third epoch.
TEST(BrokenImages, AHundredInARow_AreAnErrorAtAnyTime) {
  BrokenImages images(5000, 0.1, "run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION");
  for (int64_t i = 0; i < 5000; ++i) images.AddGood(i);
  for (int i = 0; i < 60; ++i) EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(i)));
  images.AddGood(70);
  for (int i = 0; i < 100; ++i)
    EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(i))) << "again for the first 60";
  EXPECT_THAT(images.AddBroken(100, ReadFault::kDamaged, Reason(100)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("the last 101 images could not be read"),
                             HasSubstr("run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION=1"), HasSubstr("100.jpg"))));
  BrokenImages all_allowed(5000, 1.0, "MAX_BROKEN_FRACTION");
  for (int i = 0; i < 1000; ++i) EXPECT_OK(all_allowed.AddBroken(i, ReadFault::kDamaged, Reason(i)));
}

TEST(BrokenImages, ALimitOfTheProcess_IsNoBrokenImage) {
  BrokenImages images(5000, 0.1, "MAX_BROKEN_FRACTION");
  const absl::Status no_descriptor =
      WithDetail(absl::ResourceExhaustedError("too many open files"), kDetailErrno, "24");
  EXPECT_EQ(images.AddBroken(3, ReadFault::kUnreadable, no_descriptor), no_descriptor);
  EXPECT_EQ(images.broken(), 0);
}

// 25 of 5000: chance may have given it more than its share of them.
TEST(BrokenImages, PartOfADataSet_IsMeasuredByItsSize_WithAMarginForChance) {
  BrokenImages images(5000, 0.1, "MAX_BROKEN_FRACTION");
  images.WillRead(25);
  for (int i = 0; i < 7; ++i) EXPECT_OK(images.AddBroken(400 + i, ReadFault::kDamaged, Reason(i)));
  EXPECT_THAT(images.AddBroken(2, ReadFault::kDamaged, Reason(2)),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("a share of 0.1 of the first 25, 7 with a margin for chance; the last one: ")));
}

TEST(BrokenImages, PartOfASmallDataSet_HasNoMoreThanTheWholeMayHave) {
  BrokenImages images(30, 0.1, "MAX_BROKEN_FRACTION");
  images.WillRead(15);
  for (int i = 0; i < 3; ++i) EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(i)));
  EXPECT_THAT(images.AddBroken(3, ReadFault::kDamaged, Reason(3)), StatusIs(absl::StatusCode::kDataLoss));
}

// What is read of it is enough to judge by.
TEST(BrokenImages, PartThatIsLargerThanTheWindow_NeedsNoMargin) {
  BrokenImages images(5000, 0.1, "MAX_BROKEN_FRACTION");
  images.WillRead(2000);
  for (int i = 0; i < 100; ++i) EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(i)));
  images.AddGood(100);
  EXPECT_THAT(images.AddBroken(101, ReadFault::kDamaged, Reason(101)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of the first 1000; ")));
}

TEST(BrokenImages, One_IsNeverTooManyOfAFew) {
  BrokenImages images(9, 0.1, "MAX_BROKEN_FRACTION");
  images.WillRead(9);
  EXPECT_OK(images.AddBroken(4, ReadFault::kDamaged, Reason(4)));
  EXPECT_THAT(images.AddBroken(5, ReadFault::kDamaged, Reason(5)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of the first 9; ")));
  BrokenImages none_allowed(9, 0.0, "MAX_BROKEN_FRACTION");
  EXPECT_THAT(none_allowed.AddBroken(4, ReadFault::kDamaged, Reason(4)), StatusIs(absl::StatusCode::kDataLoss));
}

// A folder of which nothing can be read comes as a whole.
TEST(BrokenImages, ReadInOrder_AreJudgedByAll) {
  BrokenImages images(5000, 0.1, "MAX_BROKEN_FRACTION");
  images.WillReadInOrder();
  for (int i = 0; i < 500; ++i) EXPECT_OK(images.AddBroken(i, ReadFault::kDamaged, Reason(i)));
  for (int i = 500; i < 4000; ++i) images.AddGood(i);
  EXPECT_THAT(images.AddBroken(4000, ReadFault::kDamaged, Reason(0)),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("501 of the first 4001 images cannot be read, but MAX_BROKEN_FRACTION allows a share "
                                 "of 0.1 of the first 5000; ")));
}

TEST(BrokenImages, OneOfSeveralRanks_SaysWhichItIs) {
  BrokenImages images(20, 1.0, "MAX_BROKEN_FRACTION", "rank 1 of 2");
  images.AddGood(7);
  EXPECT_OK(images.AddBroken(3, ReadFault::kEmpty, Reason(3)));
  EXPECT_EQ(images.Summary(), "rank 1 of 2 tried 2 images, 1 of which cannot be read: 1 empty");
}

// Three of twenty, and six of a hundred.
TEST(BrokenImages, JoinedDataSets_AreJudgedAndToldOfAsOne) {
  CapturedLog log;
  {
    BrokenImages first(60, 0.05, "run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION", "rank 0 of 2");
    BrokenImages second(20, 0.05, "unused");
    BrokenImages third(40, 0.05, "unused");
    second.Join(&first);
    third.Join(&first);
    for (int i = 0; i < 3; ++i) EXPECT_OK(second.AddBroken(i, ReadFault::kEmpty, Reason(i)));
    for (int i = 0; i < 3; ++i) EXPECT_OK(third.AddBroken(i, ReadFault::kDamaged, Reason(i)));
    EXPECT_OK(third.AddBroken(0, ReadFault::kDamaged, Reason(0))) << "once more";
    first.AddGood(0);
    EXPECT_THAT(first.AddBroken(1, ReadFault::kEmpty, Reason(1)),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("7 of the first 8 images cannot be read, but run.yaml:7: "
                                   "config.DATA.TRAIN.MAX_BROKEN_FRACTION allows a share of 0.05 of the first 120")));
    for (const BrokenImages* images : {&first, &second, &third}) EXPECT_EQ(images->broken(), 7);
    log.lines.clear();
  }
  EXPECT_THAT(log.lines, ElementsAre("rank 0 of 2 tried 8 images, 7 of which cannot be read: 4 empty, 3 damaged"));
}

TEST(BrokenImages, JoinedPartsOfDataSets_AreMeasuredByWhatIsRead) {
  BrokenImages first(500, 0.1, "MAX_BROKEN_FRACTION"), second(500, 0.1, "MAX_BROKEN_FRACTION");
  first.WillRead(16);
  second.WillRead(20);
  second.Join(&first);
  for (int i = 0; i < 9; ++i) EXPECT_OK(second.AddBroken(i, ReadFault::kDamaged, Reason(i)));
  EXPECT_THAT(second.AddBroken(9, ReadFault::kDamaged, Reason(9)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of the first 36, 9 with a margin for chance")));
}

// Between its images, those of the other one are read.
TEST(BrokenImages, DiskOfOneOfTheJoinedDataSets_IsMissed) {
  BrokenImages first(2000, 0.1, "MAX_BROKEN_FRACTION"), second(2000, 0.1, "MAX_BROKEN_FRACTION");
  second.Join(&first);
  for (int i = 0; i < 2000; ++i) first.AddGood(i);
  for (int i = 0; i < 100; ++i) {
    EXPECT_OK(second.AddBroken(i, ReadFault::kUnreadable, Reason(i)));
    first.AddGood(i);
  }
  EXPECT_THAT(second.AddBroken(100, ReadFault::kUnreadable, Reason(100)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the last 101 images of one source could not be read")));
  second.AddGood(101);
  EXPECT_OK(second.AddBroken(102, ReadFault::kUnreadable, Reason(102)));
}

// All are read in every epoch.
TEST(BrokenImages, JoinedDataSetOfWhichAllMayBeBroken_HasNoRowOfItsOwn) {
  BrokenImages large(1000, 0.1, "MAX_BROKEN_FRACTION"), small(60, 0.1, "MAX_BROKEN_FRACTION");
  small.Join(&large);
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (int i = 0; i < 60; ++i) {
      EXPECT_OK(small.AddBroken(i, ReadFault::kDamaged, Reason(i)));
      large.AddGood(i);
    }
  }
  for (int i = 0; i < 100; ++i) EXPECT_OK(small.AddBroken(i % 60, ReadFault::kDamaged, Reason(i)));
  EXPECT_THAT(small.AddBroken(0, ReadFault::kDamaged, Reason(0)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the last 101 images could not be read")));
}

TEST(BrokenImages, SmallDataSet_IsMeasuredByItsSize) {
  BrokenImages images(20, 0.1, "MAX_BROKEN_FRACTION");
  EXPECT_OK(images.AddBroken(0, ReadFault::kDamaged, Reason(0)));
  EXPECT_OK(images.AddBroken(1, ReadFault::kDamaged, Reason(1)));
  EXPECT_THAT(images.AddBroken(2, ReadFault::kDamaged, Reason(2)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of the first 20")));
}

}  // namespace
}  // namespace ssl
