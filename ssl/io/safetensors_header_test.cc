// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/safetensors_header.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// One tensor entry, with its quotes written as ' for legibility.
std::string Json(absl::string_view text) {
  std::string json(text);
  for (char& letter : json) letter = letter == '\'' ? '"' : letter;
  return json;
}

TEST(SafetensorsHeaderTest, GoodHeader_GivesEntriesInItsOrder) {
  ASSERT_OK_AND_ASSIGN(const SafetensorsTable table,
                       ParseSafetensorsHeader(Json("{'__metadata__':{'step':'7'},"
                                                   "'z':{'dtype':'F32','shape':[2,3],'data_offsets':[4,28]},"
                                                   "'a':{'data_offsets':[0,4],'shape':[],'dtype':'I32'},"
                                                   "'empty':{'dtype':'F64','shape':[0,5],'data_offsets':[4,4]}}   "),
                                              28));
  EXPECT_EQ(table.metadata.at("step"), "7");
  ASSERT_THAT(table.entries, SizeIs(3));
  EXPECT_EQ(table.entries[0].name, "z");
  EXPECT_EQ(table.entries[0].dtype, "F32");
  EXPECT_THAT(table.entries[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(table.entries[0].begin, 4);
  EXPECT_EQ(table.entries[0].end, 28);
  EXPECT_THAT(table.entries[1].shape, IsEmpty());
  EXPECT_THAT(table.entries[2].shape, ElementsAre(0, 5));
}

TEST(SafetensorsHeaderTest, EmptyTable_IsGood) {
  ASSERT_OK_AND_ASSIGN(const SafetensorsTable table, ParseSafetensorsHeader("{}", 0));
  EXPECT_THAT(table.entries, IsEmpty());
}

TEST(SafetensorsHeaderTest, EveryDtype_HasItsSize) {
  const std::vector<std::pair<std::string, int64_t>> sizes = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                                              {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                                              {"U8", 1},  {"BOOL", 1}};
  for (const auto& [dtype, bytes] : sizes) {
    EXPECT_EQ(SafetensorsDtypeBytes(dtype), bytes);
    const std::string header =
        Json(absl::StrCat("{'t':{'dtype':'", dtype, "','shape':[3],'data_offsets':[0,", 3 * bytes, "]}}"));
    EXPECT_OK(ParseSafetensorsHeader(header, 3 * bytes));
  }
  EXPECT_EQ(SafetensorsDtypeBytes("C64"), 0);
}

// A header (quotes as '), the size of the data, and what the message names.
struct Hostile {
  std::string header;
  int64_t data_bytes;
  std::string message;
};

std::string Entry(absl::string_view shape, absl::string_view offsets) {
  return absl::StrCat("{'t':{'dtype':'F32','shape':[", shape, "],'data_offsets':[", offsets, "]}}");
}

std::string TwoEntries(absl::string_view first, absl::string_view second) {
  return absl::StrCat("{'a':{'dtype':'U8','shape':[4],'data_offsets':[", first,
                      "]},'b':{'dtype':'U8','shape':[4],'data_offsets':[", second, "]}}");
}

std::vector<Hostile> HostileExtents() {
  return {
      {TwoEntries("0,4", "2,6"), 6, "tensor 'b': begins at 2, expected 4: an overlap"},
      {TwoEntries("0,4", "0,4"), 4, "an overlap"},
      {TwoEntries("0,4", "6,10"), 10, "tensor 'b': begins at 6, expected 4: a hole"},
      {TwoEntries("1,5", "5,9"), 9, "tensor 'a': begins at 1, expected 0: a hole"},
      {TwoEntries("0,4", "4,8"), 9, "data: has 9 bytes, expected 8"},
      {TwoEntries("0,4", "4,8"), 7, "data: has 7 bytes, expected 8"},
      {"{}", 1, "data: has 1 bytes, expected 0"},
      {Entry("2", "0,4"), 4, "expected 8 bytes for F32 [2]"},
      {Entry("1", "4,0"), 4, "data_offsets are 4 and 0"},
      {Entry("1", "0"), 4, "data_offsets has 1 numbers"},
      {Entry("1", "0,4,4"), 4, "data_offsets: has more than 2 numbers"},
      {Entry("4611686018427387904", "0,0"), 0, "overflows"},
      {Entry("9223372036854775807,9223372036854775807", "0,4"), 4, "overflows"},
      {Entry("0,4294967296,4294967296", "0,0"), 0, "overflows"},
      {Entry("4294967296,4294967296,0", "0,0"), 0, "overflows"},
      {Entry("18446744073709551615", "0,4"), 4, "is above 2^63 - 1"},
      {Entry("1", "0,9223372036854775808"), 4, "is above 2^63 - 1"},
      {Entry("99999999999999999999", "0,4"), 4, "holds number 99999999999999999999"},
      {Entry("-1", "0,4"), 4, "holds number -1"},
      {Entry("1.0", "0,4"), 4, "holds number 1.0"},
      {Entry("'1'", "0,4"), 4, "holds a string"},
      {Entry("[1]", "0,4"), 4, "holds a list"},
      {Entry("null", "0,4"), 4, "holds null"},
      {Entry("true", "0,4"), 4, "holds a boolean"},
  };
}

std::vector<Hostile> HostileStructure() {
  return {
      {"", 0, "does not begin with '{'"},
      {" {}", 0, "does not begin with '{'"},
      {"[]", 0, "does not begin with '{'"},
      {"{", 0, "not valid JSON"},
      {"{}x", 0, "not valid JSON"},
      {"{}{}", 0, "not valid JSON"},
      {"{'a\xFF':1}", 0, "not valid JSON"},
      {"{'t':1}", 0, "tensor 't': entry: holds number 1"},
      {"{'t':{}}", 0, "expected dtype, shape and data_offsets"},
      {"{'t':{'dtype':'F32','shape':[1]}}", 4, "has only dtype, shape"},
      {"{'t':{'dtype':'F32','dtype':'F32'}}", 4, "dtype occurs twice"},
      {"{'t':{'dtype':'C64'}}", 4, "dtype is 'C64', expected one of F64"},
      {"{'t':{'dtype':32}}", 4, "tensor 't': dtype: holds number 32"},
      {"{'t':{'shape':{}}}", 4, "shape: holds an object"},
      {"{'t':{'code':'x'}}", 4, "has the key 'code'"},
      {"{'__metadata__':{'a':1}}", 0, "metadata: holds number 1"},
      {"{'__metadata__':{'a':{}}}", 0, "metadata: holds an object"},
      {"{'__metadata__':{'a':'1','a':'2'}}", 0, "metadata key 'a' occurs twice"},
      {"{'__metadata__':{},'__metadata__':{}}", 0, "occurs twice"},
      {"{'t':{'dtype':'U8','shape':[0],'data_offsets':[0,0]},"
       "'t':{'dtype':'U8','shape':[0],'data_offsets':[0,0]}}",
       0, "tensor 't' occurs twice"},
  };
}

void ExpectRefused(const std::vector<Hostile>& cases) {
  for (const Hostile& hostile : cases) {
    EXPECT_THAT(ParseSafetensorsHeader(Json(hostile.header), hostile.data_bytes),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(hostile.message)))
        << hostile.header;
  }
}

TEST(SafetensorsHeaderTest, ExtentsThatDoNotTileTheData_AreRefused) { ExpectRefused(HostileExtents()); }

TEST(SafetensorsHeaderTest, AnyOtherStructure_IsRefused) { ExpectRefused(HostileStructure()); }

TEST(SafetensorsHeaderTest, DeepNesting_IsLeftAtTheFirstLevelThatDoesNotBelong) {
  const std::string deep_list(10'000'000, '[');
  std::string deep_object;
  for (int i = 0; i < 1'000'000; ++i) deep_object += "{\"a\":";
  for (const std::string& deep : {deep_list, deep_object}) {
    EXPECT_THAT(ParseSafetensorsHeader("{\"t\":" + deep, 0),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("tensor ")));
  }
}

TEST(SafetensorsHeaderTest, TooManyDimensions_AreRefused) {
  std::string shape = "1";
  for (int i = 1; i < kMaxSafetensorsRank; ++i) shape += ",1";
  EXPECT_OK(ParseSafetensorsHeader(Json(Entry(shape, "0,4")), 4));
  EXPECT_THAT(ParseSafetensorsHeader(Json(Entry(shape + ",1", "0,4")), 4),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("more than 64")));
}

TEST(SafetensorsHeaderTest, LongAndBinaryNames_AreShownShortAndPrintable) {
  const std::string name = "\\n" + std::string(1'000'000, 'x');
  EXPECT_THAT(ParseSafetensorsHeader(Json("{'" + name + "':1}"), 0),
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("'\\nxxx"), HasSubstr("xxx...'"))));
}

TEST(SafetensorsHeaderTest, EveryTruncation_IsRefused) {
  const std::string header = Json(TwoEntries("0,4", "4,8"));
  for (size_t size = 0; size < header.size(); ++size) {
    EXPECT_THAT(ParseSafetensorsHeader(header.substr(0, size), 8), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(SafetensorsHeaderLengthTest, Length_IsBoundedByFormatAndFile) {
  const auto length = [](uint64_t value, int64_t file_size) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
    return ParseSafetensorsHeaderLength(bytes, file_size);
  };
  EXPECT_EQ(length(0x102, 1000).value(), 0x102);
  EXPECT_EQ(length(100'000'000, 200'000'000).value(), 100'000'000);
  const std::vector<uint64_t> too_large = {100'000'001, uint64_t{1} << 63, ~uint64_t{0}};
  for (const uint64_t value : too_large) {
    EXPECT_THAT(length(value, int64_t{1} << 62),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr(absl::StrCat("header length is ", value, ", expected at most 100000000"))));
  }
  EXPECT_THAT(length(100, 107), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("only 99 bytes")));
  EXPECT_THAT(ParseSafetensorsHeaderLength("1234567", 7),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("size is 7 bytes")));
}

TEST(FormatSafetensorsHeaderTest, Header_IsPaddedAndParsesBack) {
  SafetensorsTable table;
  table.metadata = {{"key", "va\"lue\n"}};
  table.entries = {{"tensor \xC3\xA4", "BF16", {2}, 0, 4}, {"b", "U8", {}, 4, 5}};
  ASSERT_OK_AND_ASSIGN(const std::string bytes, FormatSafetensorsHeader(table));
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_EQ(ParseSafetensorsHeaderLength(bytes, bytes.size() + 5).value(), static_cast<int64_t>(bytes.size()) - 8);
  ASSERT_OK_AND_ASSIGN(const SafetensorsTable back, ParseSafetensorsHeader(bytes.substr(8), 5));
  EXPECT_EQ(back.metadata, table.metadata);
  ASSERT_THAT(back.entries, SizeIs(2));
  EXPECT_EQ(back.entries[0].name, "tensor \xC3\xA4");
  EXPECT_EQ(back.entries[1].name, "b");
}

TEST(FormatSafetensorsHeaderTest, NamesThatTheFormatCannotHold_AreInvalid) {
  const auto format = [](const std::vector<std::string>& names) {
    SafetensorsTable table;
    for (const std::string& name : names) table.entries.push_back({name, "U8", {0}, 0, 0});
    return FormatSafetensorsHeader(table);
  };
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(format({"a", "a"}), StatusIs(invalid, HasSubstr("tensor 'a': the name is taken")));
  EXPECT_THAT(format({"__metadata__"}), StatusIs(invalid, HasSubstr("__metadata__")));
  EXPECT_THAT(format({"\xFF"}), StatusIs(invalid, HasSubstr("'\\xff' is not UTF-8")));
  SafetensorsTable table;
  table.metadata = {{"key", "\xFF"}};
  EXPECT_THAT(FormatSafetensorsHeader(table), StatusIs(invalid, HasSubstr("not UTF-8")));
}

}  // namespace
}  // namespace ssl
