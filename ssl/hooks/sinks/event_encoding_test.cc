// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/event_encoding.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

// Doubles of 0 in the fields [first, last], in hexadecimal.
std::string ZeroDoubles(int first, int last) {
  std::string text;
  for (int field = first; field <= last; ++field) {
    absl::StrAppend(&text, absl::Hex(field << 3 | 1, absl::kZeroPad2), "0000000000000000");
  }
  return text;
}

// The bytes that the Python package tensorboard 2.21 writes for the same events.
TEST(EventEncoding, FileVersion_HasTheBytesOfTensorboard) {
  EXPECT_EQ(absl::BytesToHexString(EncodeFileVersion(1.5)), "09000000000000f83f1a0d627261696e2e4576656e743a32");
}

TEST(EventEncoding, SessionStart_HasTheBytesOfTensorboard) {
  EXPECT_EQ(absl::BytesToHexString(EncodeSessionStart(1.5, 300)), "09000000000000f83f10ac023a020801");
}

TEST(EventEncoding, Scalars_HaveTheBytesOfTensorboard) {
  const MetricReport report{300, 0, {{"a", 0.5}, {"b/c", -2.0}}};
  EXPECT_EQ(absl::BytesToHexString(EncodeReport(1.5, report).value_or("")),
            "09000000000000f83f10ac022a160a080a0161150000003f0a0a0a03622f6315000000c0");
}

TEST(EventEncoding, Histogram_HasTheBytesOfTensorboard) {
  MetricReport report{300, 0, {{"a", 0.5}}};
  report.histograms["h"] = {-1.0, 3.0, 4, 2.5, 11.25, {-1.0, 1.0, 3.0}, {1.0, 3.0}};
  EXPECT_EQ(absl::BytesToHexString(EncodeReport(1.5, report).value_or("")),
            "09000000000000f83f10ac022a620a080a0161150000003f"
            "0a560a01682a5109000000000000f0bf110000000000000840190000000000001040210000000000000440290000000000802640"
            "3210000000000000f03f00000000000008403a10000000000000f03f0000000000000840");
}

TEST(EventEncoding, HistogramOfNothing_HasNoBuckets) {
  MetricReport report{300, 0, {}};
  report.histograms["h"] = {};
  EXPECT_EQ(absl::BytesToHexString(EncodeReport(1.5, report).value_or("")),
            "09000000000000f83f10ac022a340a320a01682a2d" + ZeroDoubles(1, 5));
}

// Around the PNG file, whose bytes are libpng's.
TEST(EventEncoding, Image_HasTheBytesOfTensorboard) {
  MetricReport report{300, 0, {}};
  report.images["i"] = {1, 300, std::string(900, '\x7f')};
  const std::string event = EncodeReport(1.5, report).value_or("");
  const std::string png = event.substr(std::min(event.size(), event.find("\x89PNG")));
  ASSERT_GT(png.size(), 50u);
  ASSERT_LT(png.size(), 100u);  // so that each length is a varint of one byte
  const auto length = [&png](int more) { return absl::StrCat(absl::Hex(png.size() + more, absl::kZeroPad2)); };
  EXPECT_EQ(absl::BytesToHexString(event),
            absl::StrCat("09000000000000f83f10ac022a", length(16), "0a", length(14), "0a016922", length(9),
                         "080110ac02180322", length(0), absl::BytesToHexString(png)));
}

TEST(EventEncoding, ImageThatIsNone_IsAnError) {
  MetricReport report{300, 0, {}};
  report.images["i"] = {0, 0, ""};
  EXPECT_THAT(EncodeReport(1.5, report), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(EventEncoding, Record_HasTheBytesOfTensorboard) {
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord("abc")), "0300000000000000b099490e6162636e57f121");
}

TEST(EventEncoding, LargestStep_FitsItsVarint) {
  EXPECT_EQ(absl::BytesToHexString(EncodeSessionStart(0.0, INT64_MAX)),
            "09000000000000000010ffffffffffffffff7f3a020801");
}

}  // namespace
}  // namespace ssl
