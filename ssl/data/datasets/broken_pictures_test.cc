// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/broken_pictures.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LineCollector : public LogSink {
 public:
  LineCollector() { AddLogSink(this); }
  ~LineCollector() override { RemoveLogSink(this); }
  void Write(LogSeverity, absl::string_view, int, absl::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

absl::Status Reason(int number) { return absl::DataLossError(absl::StrCat("/data/", number, ".jpg: damaged")); }

TEST(BrokenPictures, FirstFew_AreNamed_ThenOnlyCounted) {
  BrokenPictures pictures(1000000, 0.5, "MAX_BROKEN_FRACTION");
  LineCollector collector;
  for (int i = 0; i < 900; ++i) pictures.AddGood();
  for (int i = 0; i < 200; ++i) EXPECT_OK(pictures.AddBroken(Reason(i)));

  ASSERT_EQ(collector.lines.size(), 7u);
  EXPECT_EQ(collector.lines[0], "picture cannot be read and is replaced: /data/0.jpg: damaged");
  EXPECT_EQ(collector.lines[5], "10 of 910 pictures could not be read and were replaced");
  EXPECT_EQ(collector.lines[6], "100 of 1000 pictures could not be read and were replaced");
  EXPECT_EQ(pictures.broken(), 200);
}

TEST(BrokenPictures, TooManyAmongTheFirst_AreAnError) {
  BrokenPictures pictures(1000000, 0.1, "run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION");
  for (int i = 0; i < 100; ++i) EXPECT_OK(pictures.AddBroken(Reason(i)));
  EXPECT_THAT(pictures.AddBroken(Reason(100)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("101 of the first 101 pictures cannot be read"),
                             HasSubstr("run.yaml:7: config.DATA.TRAIN.MAX_BROKEN_FRACTION allows a share of 0.1"),
                             HasSubstr("the last one: /data/100.jpg: damaged"))));
}

TEST(BrokenPictures, AfterTheFirstThousand_NothingIsAnError) {
  BrokenPictures pictures(1000000, 0.0, "MAX_BROKEN_FRACTION");
  for (int64_t i = 0; i < BrokenPictures::kWindow; ++i) pictures.AddGood();
  EXPECT_OK(pictures.AddBroken(Reason(0)));
}

TEST(BrokenPictures, SmallDataSet_IsMeasuredByItsSize) {
  BrokenPictures pictures(20, 0.1, "MAX_BROKEN_FRACTION");
  EXPECT_OK(pictures.AddBroken(Reason(0)));
  EXPECT_OK(pictures.AddBroken(Reason(1)));
  EXPECT_THAT(pictures.AddBroken(Reason(2)), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of the first 20")));
}

}  // namespace
}  // namespace ssl
