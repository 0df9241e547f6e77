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
using ::testing::HasSubstr;

absl::Status Reason(int number) { return absl::DataLossError(absl::StrCat("/data/", number, ".jpg: damaged")); }

TEST(BrokenImages, FirstFew_AreNamed_ThenOnlyCounted) {
  const CapturedLog log;
  {
    BrokenImages images(1000000, 0.5, "MAX_BROKEN_FRACTION");
    for (int i = 1000; i < 1900; ++i) images.AddGood(i);
    for (int i = 0; i < 150; ++i) {
      EXPECT_OK(images.AddBroken(i, Reason(i)));
      if (i % 10 == 0) images.AddGood(1000);
    }
    ASSERT_EQ(log.lines.size(), 7u);
    EXPECT_EQ(images.broken(), 150);
  }
  EXPECT_EQ(log.lines[0], "image cannot be read and is replaced: /data/0.jpg: damaged");
  EXPECT_EQ(log.lines[5], "10 of 910 images cannot be read and were replaced: 10 damaged");
  EXPECT_EQ(log.lines[6], "100 of 1000 images cannot be read and were replaced: 100 damaged");
  ASSERT_EQ(log.lines.size(), 8u);
  EXPECT_EQ(log.lines[7], "150 of 1050 images cannot be read and were replaced: 150 damaged") << "at the end";
}

TEST(BrokenImages, NoneBroken_IsSilent) {
  const CapturedLog log;
  { BrokenImages(10, 0.5, "MAX_BROKEN_FRACTION").AddGood(3); }
  EXPECT_TRUE(log.lines.empty());
}

// By the codes of DecodeImage and FileSystem.
TEST(BrokenImages, Kinds_AreCountedApart) {
  BrokenImages images(100, 1.0, "MAX_BROKEN_FRACTION");
  const std::vector<absl::Status> reasons = {absl::DataLossError("1"),          absl::UnimplementedError("2"),
                                             absl::ResourceExhaustedError("3"), absl::NotFoundError("4"),
                                             absl::InvalidArgumentError("5"),   absl::DataLossError("6")};
  for (size_t i = 0; i < reasons.size(); ++i) EXPECT_OK(images.AddBroken(static_cast<int64_t>(i), reasons[i]));
  EXPECT_EQ(images.Summary(),
            "6 of 6 images cannot be read and were replaced: 2 damaged, 1 of another format, 1 over a limit, "
            "1 missing, 1 unreadable");
}

// The loader reads the first image once more than the others, and every epoch reads all.
TEST(BrokenImages, ImageThatIsReadAgain_CountsOnce) {
  BrokenImages images(10, 0.2, "MAX_BROKEN_FRACTION");
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (int64_t i = 0; i < 8; ++i) images.AddGood(i);
    for (int64_t i = 8; i < 10; ++i) EXPECT_OK(images.AddBroken(i, Reason(static_cast<int>(i))));
  }
  EXPECT_EQ(images.Summary(), "2 of 10 images cannot be read and were replaced: 2 damaged");
}

TEST(BrokenImages, GoodOneThatBreaksLater_Counts) {
  BrokenImages images(10, 0.1, "MAX_BROKEN_FRACTION");
  for (int64_t i = 0; i < 10; ++i) images.AddGood(i);
  EXPECT_OK(images.AddBroken(3, Reason(3)));
  images.AddGood(3);
  EXPECT_EQ(images.Summary(), "1 of 10 images cannot be read and were replaced: 1 damaged");
}

TEST(BrokenImages, TooManyAmongTheFirst_AreAnError) {
  BrokenImages images(1000000, 0.1, "run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION");
  for (int i = 0; i < 100; ++i) EXPECT_OK(images.AddBroken(i, Reason(i)));
  EXPECT_THAT(images.AddBroken(100, Reason(100)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("101 of the first 101 images cannot be read"),
                             HasSubstr("run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION allows a share of 0.1"),
                             HasSubstr("the last one: /data/100.jpg: damaged"))));
}

TEST(BrokenImages, AfterTheFirstThousand_NothingIsAnError) {
  BrokenImages images(1000000, 0.0, "MAX_BROKEN_FRACTION");
  for (int64_t i = 0; i < BrokenImages::kWindow; ++i) images.AddGood(i);
  EXPECT_OK(images.AddBroken(BrokenImages::kWindow, Reason(0)));
}

// The disk is gone in the third epoch.
TEST(BrokenImages, AHundredInARow_AreAnErrorAtAnyTime) {
  BrokenImages images(5000, 0.1, "run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION");
  for (int64_t i = 0; i < 5000; ++i) images.AddGood(i);
  for (int i = 0; i < 60; ++i) EXPECT_OK(images.AddBroken(i, Reason(i)));
  images.AddGood(70);
  for (int i = 0; i < 100; ++i) EXPECT_OK(images.AddBroken(i, Reason(i))) << "again for the first 60";
  EXPECT_THAT(images.AddBroken(100, Reason(100)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("the last 101 images could not be read"),
                             HasSubstr("run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION=1"), HasSubstr("100.jpg"))));
  BrokenImages all_allowed(5000, 1.0, "MAX_BROKEN_FRACTION");
  for (int i = 0; i < 1000; ++i) EXPECT_OK(all_allowed.AddBroken(i, Reason(i)));
}

TEST(BrokenImages, ALimitOfTheProcess_IsNoBrokenImage) {
  BrokenImages images(5000, 0.1, "MAX_BROKEN_FRACTION");
  const absl::Status no_descriptor =
      WithDetail(absl::ResourceExhaustedError("too many open files"), kDetailErrno, "24");
  EXPECT_EQ(images.AddBroken(3, no_descriptor), no_descriptor);
  EXPECT_EQ(images.broken(), 0);
}

TEST(BrokenImages, SmallDataSet_IsMeasuredByItsSize) {
  BrokenImages images(20, 0.1, "MAX_BROKEN_FRACTION");
  EXPECT_OK(images.AddBroken(0, Reason(0)));
  EXPECT_OK(images.AddBroken(1, Reason(1)));
  EXPECT_THAT(images.AddBroken(2, Reason(2)), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of the first 20")));
}

}  // namespace
}  // namespace ssl
