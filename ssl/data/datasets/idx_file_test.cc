// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/idx_file.h"

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/data/datasets/testing/idx_files.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = result.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

// Text that deflate cannot make much smaller.
std::string Noise(size_t size) {
  std::string bytes;
  uint32_t state = 1;
  while (bytes.size() < size) {
    state = state * 1664525 + 1013904223;
    bytes.push_back(static_cast<char>(state >> 24));
  }
  return bytes;
}

// Through a real file, under a name that says nothing about its content.
absl::StatusOr<IdxArray> ReadFile(const std::string& bytes, int num_dimensions) {
  const std::string path = MakeTempDir("idx") + "/some.idx";
  const std::unique_ptr<WritableFile> file = PosixFileSystem().Create(path).value();
  EXPECT_OK(file->Append(bytes));
  EXPECT_OK(file->Close());
  return ReadIdx(PosixFileSystem(), path, num_dimensions);
}

TEST(IdxFile, PlainAndCompressed_GiveTheSameArray) {
  const std::string values = Noise(2 * 3 * 4);
  for (const std::string& bytes : {IdxBytes({2, 3, 4}, values), Gzip(IdxBytes({2, 3, 4}, values))}) {
    ASSERT_OK_AND_ASSIGN(const IdxArray array, ReadFile(bytes, 3));
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(array.values, std::vector<uint8_t>(values.begin(), values.end()));
  }
}

TEST(IdxFile, LargeFile_IsReadWhole) {
  const std::string values = Noise(3000000);
  ASSERT_OK_AND_ASSIGN(const IdxArray array, ReadFile(Gzip(IdxBytes({3000000}, values)), 1));
  EXPECT_EQ(array.values, std::vector<uint8_t>(values.begin(), values.end()));
}

TEST(IdxFile, EmptyArray_IsRead) {
  for (const std::string& bytes : {IdxBytes({0}, ""), Gzip(IdxBytes({0}, ""))}) {
    ASSERT_OK_AND_ASSIGN(const IdxArray array, ReadFile(bytes, 1));
    EXPECT_TRUE(array.values.empty());
  }
}

struct Damage {
  std::string what;
  std::string bytes;
  absl::StatusCode code;
  std::string message;
};

TEST(IdxFile, DamagedFiles_NameTheFileAndWhatIsWrong) {
  const std::string good = IdxBytes({2, 2, 2}, "abcdefgh");
  const auto data_loss = absl::StatusCode::kDataLoss;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::vector<Damage> table = {
      {"empty", "", data_loss, "expected 4 bytes of magic number, found 0"},
      {"short magic", good.substr(0, 3), data_loss, "expected 4 bytes of magic number, found 3"},
      {"other kind of file", "PK\x03\x04 zip", invalid, "magic number is 504b0304, expected 00000803"},
      {"floats", std::string("\0\0\x0d\x03", 4) + good.substr(4), invalid, "magic number is 00000d03"},
      {"labels for images", IdxBytes({2}, "ab"), invalid, "magic number is 00000801, expected 00000803"},
      {"short header", good.substr(0, 15), data_loss, "expected 12 bytes of dimensions, found 11"},
      {"one byte missing", good.substr(0, good.size() - 1), data_loss, "expected 8 bytes of values, found 7"},
      {"one byte too many", good + "i", data_loss, "1 trailing bytes after the 24"},
      {"huge header", IdxBytes({0xffffffff, 0xffffffff, 0xffffffff}, "abc"), data_loss,
       "4294967295 x 4294967295 x 4294967295"},
      {"overflow to a small product", IdxBytes({1u << 31, 1u << 31, 4}, "abc"), data_loss, "can hold at most"},
      {"compressed: one byte missing", Gzip(good.substr(0, good.size() - 1)), data_loss,
       "expected 8 bytes of values, found 7"},
      {"compressed: one byte too many", Gzip(good + "i"), data_loss, "trailing bytes"},
      {"compressed: huge header", Gzip(IdxBytes({0xffffffff, 28, 28}, "abc")), data_loss, "can hold at most"},
      {"compressed: second member", Gzip(good) + Gzip(good), data_loss, "trailing bytes after the end of the"},
      {"compressed: rubbish behind", Gzip(good) + "x", data_loss, "1 trailing bytes after the end of the"},
      {"compressed: no checksum", Gzip(good).substr(0, Gzip(good).size() - 8), data_loss, "has no end"},
      {"compressed: wrong checksum", Gzip(good).replace(Gzip(good).size() - 8, 1, "!"), data_loss, "damaged"},
      {"compressed: only the magic", std::string("\x1f\x8b", 2), data_loss, "found 0"},
      {"compressed: wrong method", std::string("\x1f\x8b\x07\0\0\0\0\0\0\0", 10), data_loss, "damaged"},
  };
  for (const Damage& damage : table) {
    SCOPED_TRACE(damage.what);
    EXPECT_THAT(ReadFile(damage.bytes, 3),
                StatusIs(damage.code, AllOf(HasSubstr("/some.idx: "), HasSubstr(damage.message))));
  }
}

TEST(IdxFile, TruncationAtEveryByte_IsDetected) {
  for (const std::string& bytes : {IdxBytes({4, 4, 4}, Noise(64)), Gzip(IdxBytes({4, 4, 4}, Noise(64)))}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THAT(ParseIdx(bytes.substr(0, size), "x", 3), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("x: ")))
          << size;
    }
  }
}

TEST(IdxFile, FlippedBitAnywhereInACompressedFile_IsDetectedOrHarmless) {
  const std::string values = Noise(200);
  const std::string bytes = Gzip(IdxBytes({200}, values));
  int detected = 0;
  for (size_t byte = 0; byte < bytes.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      const absl::StatusOr<IdxArray> array = ParseIdx(flipped, "x", 1);
      if (array.ok()) {
        // Time stamp and operating system, and the padding of a stored block, stand there without a checksum.
        EXPECT_EQ(array->values, std::vector<uint8_t>(values.begin(), values.end())) << byte;
        EXPECT_LE(byte, 10u);
      } else {
        ++detected;
      }
    }
  }
  EXPECT_GT(detected, static_cast<int>(bytes.size() - 11) * 8);
}

TEST(IdxFile, DecompressionBomb_StopsWhereTheHeaderSays) {
  // 64 MiB of zeros in some 64 kB; the header speaks of 8 bytes.
  const std::string bomb = Gzip(IdxBytes({2, 2, 2}, std::string(64 << 20, '\0')));
  ASSERT_LT(bomb.size(), 100000u);

  EXPECT_THAT(ParseIdx(bomb, "bomb", 3), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("trailing bytes")));
}

TEST(IdxFile, MissingFile_IsNotFound) {
  EXPECT_THAT(ReadIdx(PosixFileSystem(), MakeTempDir("idx") + "/gone", 3),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/gone")));
}

}  // namespace
}  // namespace ssl
