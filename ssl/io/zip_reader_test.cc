// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/zip_reader.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/testing/zip_builder.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

TEST(ZipReader, ReadsStoredDeflatedAndZip64Entries) {
  for (const bool zip64 : {false, true}) {
    const std::string zeros(100'000, '\0');
    ZipItem stored{"a/stored", "some bytes"};
    ZipItem deflated{"a/deflated", zeros, /*deflate=*/true};
    stored.zip64 = deflated.zip64 = zip64;
    const std::string file = BuildZip({stored, deflated, {"a/empty", ""}}, zip64);
    ASSERT_TRUE(IsZip(file));
    ASSERT_OK_AND_ASSIGN(const std::vector<ZipEntry> entries, ReadZipDirectory(file));
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries[0].name, "a/stored");
    EXPECT_EQ(entries[0].stored, "some bytes");
    EXPECT_OK(CheckZipContent(entries[0], entries[0].stored));
    ASSERT_OK_AND_ASSIGN(const std::string inflated, InflateZipEntry(entries[1]));
    EXPECT_EQ(inflated, zeros);
    EXPECT_OK(CheckZipContent(entries[1], inflated));
    EXPECT_EQ(entries[2].size, 0);
  }
}

// Longer than the pieces in which zlib gets it.
TEST(ZipReader, InflatesLongEntriesWhole) {
  std::string text;
  for (uint64_t i = 0; text.size() < 5'000'000; ++i) text += std::to_string(i * 2'654'435'761U);
  ZipItem item{"a", text, /*deflate=*/true};
  const std::string file = BuildZip({item});
  ASSERT_OK_AND_ASSIGN(const std::vector<ZipEntry> entries, ReadZipDirectory(file));
  EXPECT_GT(entries[0].stored.size(), size_t{1} << 20);
  ASSERT_OK_AND_ASSIGN(const std::string inflated, InflateZipEntry(entries[0]));
  EXPECT_TRUE(inflated == text);
}

TEST(ZipReader, FindsTheEndBehindAComment) {
  std::string file = BuildZip({{"a", "1"}});
  file[file.size() - 2] = 12;
  file += "PK\x05\x06 comment";
  EXPECT_OK(ReadZipDirectory(file));
}

TEST(ZipReader, RefusesWhatEntriesMayNotClaim) {
  const auto error_of = [](ZipItem item) { return ReadZipDirectory(BuildZip({item})).status(); };
  ZipItem item{"a", "12345678"};
  item.claimed_size = 9;
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("entry 'a' claims 9 bytes in 8 bytes")));
  item = {"a", "12345678"};
  item.claimed_stored_size = item.claimed_size = uint64_t{0xFFFFFFFE};
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("claims 4294967294 bytes at")));
  item.zip64 = true;
  item.claimed_stored_size = item.claimed_size = UINT64_MAX - 1;
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("claims 18446744073709551614")));
  item = {"a", std::string(10'000, '\0'), /*deflate=*/true};
  item.claimed_size = uint64_t{0xFFFFFFFE};
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("claims 4294967294 bytes in")));
  item = {"a", "12345678"};
  item.claimed_offset = 3;
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no header at 3")));
  item = {"a", "12345678"};
  item.local_name = "b";
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("disagrees")));
  item = {"a", "12345678"};
  item.flags = 1;
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("is encrypted")));
  item = {"a", "12345678"};
  item.method = 14;
  EXPECT_THAT(error_of(item), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("compression method is 14")));
}

TEST(ZipReader, RefusesEntriesThatShareBytes) {
  ZipItem twice{"a", "12345678"};
  twice.claimed_offset = 0;
  EXPECT_THAT(ReadZipDirectory(BuildZip({{"a", "12345678"}, twice})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("entry 'a' occurs twice")));
  // The first entry's content is the whole second entry.
  ZipItem outer{"a", "12345678"};
  outer.claimed_size = outer.claimed_stored_size = 8 + 30 + 1 + 2;
  EXPECT_THAT(ReadZipDirectory(BuildZip({outer, {"b", "12"}})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("entry 'b' overlaps entry 'a'")));
}

TEST(ZipReader, FindsWrongContent) {
  ZipItem item{"a", "12345678"};
  item.claimed_crc32 = 7;
  const std::string file = BuildZip({item});
  ASSERT_OK_AND_ASSIGN(const std::vector<ZipEntry> entries, ReadZipDirectory(file));
  EXPECT_THAT(CheckZipContent(entries[0], entries[0].stored),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("entry 'a': CRC-32 is 9ae0daaf, expected 00000007")));
}

TEST(ZipReader, FindsDamagedCompression) {
  ZipItem item{"a", "some text, some text, some text", /*deflate=*/true};
  item.claimed_size = 30;  // one less
  const std::string file = BuildZip({item});
  ASSERT_OK_AND_ASSIGN(const std::vector<ZipEntry> entries, ReadZipDirectory(file));
  EXPECT_THAT(InflateZipEntry(entries[0]), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("compressed data")));
}

TEST(ZipReader, EveryTruncationIsAnError) {
  for (const bool zip64 : {false, true}) {
    const std::string file = BuildZip({{"a", "12345678"}, {"b", "12"}}, zip64);
    for (size_t size = 0; size < file.size(); ++size) {
      EXPECT_THAT(ReadZipDirectory(file.substr(0, size)), StatusIs(absl::StatusCode::kDataLoss)) << size;
    }
  }
}

// The directory is the larger part of this file: most flips hit a size, an offset or a signature.
TEST(ZipReader, FlippedBytesStayInsideTheFile) {
  const std::string whole = BuildZip({{"a", "12345678"}, {"b", "1234", /*deflate=*/true}}, /*zip64_end=*/true);
  for (size_t position = 0; position < whole.size(); ++position) {
    for (const char value : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string file = whole;
      file[position] = value;
      const auto entries = ReadZipDirectory(file);
      if (!entries.ok()) continue;
      for (const ZipEntry& entry : *entries) {
        EXPECT_GE(entry.stored.data(), file.data());
        EXPECT_LE(entry.stored.data() + entry.stored.size(), file.data() + file.size());
        EXPECT_LE(entry.size, 1032 * 1024);
        InflateZipEntry(entry).status().IgnoreError();
      }
    }
  }
}

}  // namespace
}  // namespace ssl
