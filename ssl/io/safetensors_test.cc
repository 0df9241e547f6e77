// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/safetensors.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/crc32c.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Repeat = FaultFileSystem::Repeat;

// The values of a tensor as bytes, in row-major order.
std::string Bytes(const at::Tensor& tensor) {
  const at::Tensor rows = tensor.contiguous();
  return std::string(static_cast<const char*>(rows.const_data_ptr()), rows.nbytes());
}

// A tensor with exactly these bits.
template <class Word>
at::Tensor FromBits(at::ScalarType type, const std::vector<Word>& words) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(words.size())}, type);
  EXPECT_EQ(tensor.element_size(), static_cast<int64_t>(sizeof(Word)));
  std::memcpy(tensor.mutable_data_ptr(), words.data(), words.size() * sizeof(Word));
  return tensor;
}

void ExpectSameTensors(const std::vector<NamedTensor>& actual, const std::vector<NamedTensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].name, expected[i].name);
    EXPECT_EQ(actual[i].tensor.scalar_type(), expected[i].tensor.scalar_type());
    EXPECT_EQ(actual[i].tensor.sizes(), expected[i].tensor.sizes()) << expected[i].name;
    EXPECT_TRUE(actual[i].tensor.is_contiguous());
    EXPECT_TRUE(Bytes(actual[i].tensor) == Bytes(expected[i].tensor)) << expected[i].name;
  }
}

std::vector<NamedTensor> SomeTensors() {
  return {
      {"flags", FromBits<uint8_t>(at::kBool, {1, 0, 1})},
      {"weight", FromBits<uint32_t>(at::kFloat, {0x3F800000, 0x80000000, 0x7FC12345, 0xFF800000})},
      {"step", FromBits<uint64_t>(at::kLong, {0xFFFFFFFFFFFFFFFF})},
  };
}

class SafetensorsTest : public ::testing::Test {
 protected:
  absl::StatusOr<FileDigest> Write(const std::vector<NamedTensor>& tensors) {
    return WriteSafetensors(PosixFileSystem(), path_, tensors, {});
  }

  void WriteRaw(absl::string_view bytes) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, PosixFileSystem().Create(path_));
    ASSERT_OK(file->Append(bytes));
    ASSERT_OK(file->Close());
  }

  // A file with this header, quotes as ', and `data_bytes` zeros that take no room on disk.
  void WriteHeader(std::string header, int64_t data_bytes) {
    for (char& letter : header) letter = letter == '\'' ? '"' : letter;
    std::string length(8, '\0');
    for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
    WriteRaw(length + header);
    ASSERT_EQ(truncate(path_.c_str(), 8 + header.size() + data_bytes), 0);
  }

  void ExpectRoundTrip(const std::vector<NamedTensor>& tensors) {
    ASSERT_OK(Write(tensors));
    ASSERT_OK_AND_ASSIGN(const SafetensorsContent content, ReadSafetensors(path_));
    ExpectSameTensors(content.tensors, tensors);
  }

  const std::string dir_ = MakeTempDir("safetensors");
  const std::string path_ = dir_ + "/model.safetensors";
};

TEST_F(SafetensorsTest, File_HasExactlyTheBytesOfTheFormat) {
  ASSERT_OK(WriteSafetensors(PosixFileSystem(), path_, SomeTensors(), {{"step", "7"}}));
  const std::string header =
      "{\"__metadata__\":{\"step\":\"7\"},"
      "\"flags\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[24,27]},"
      "\"weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[8,24]},"
      "\"step\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string length = {static_cast<char>(padded.size()), 0, 0, 0, 0, 0, 0, 0};
  const std::string data = std::string(8, '\xFF') + std::string(
                                                        "\x00\x00\x80\x3F\x00\x00\x00\x80\x45\x23\xC1\x7F"
                                                        "\x00\x00\x80\xFF\x01\x00\x01",
                                                        19);
  EXPECT_EQ(PosixFileSystem().Read(path_).value(), length + padded + data);
}

TEST_F(SafetensorsTest, NanPayloadsAndMinusZero_KeepTheirBits) {
  ExpectRoundTrip({
      {"f32", FromBits<uint32_t>(at::kFloat, {0x7FC00001, 0x7F800001, 0xFFFFFFFF, 0x80000000, 1})},
      {"f64", FromBits<uint64_t>(at::kDouble, {0x7FF0000000000001, 0x8000000000000000})},
      {"f16", FromBits<uint16_t>(at::kHalf, {0x7E01, 0x8000, 0x7C00})},
      {"bf16", FromBits<uint16_t>(at::kBFloat16, {0x7FC1, 0x8000, 0x3F80, 0xFF80})},
  });
}

TEST_F(SafetensorsTest, EveryDtypeAndEmptyAndScalar_RoundTrip) {
  std::vector<NamedTensor> tensors;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                                    at::kChar, at::kByte, at::kBool}) {
    const at::Tensor values = at::arange(6, at::kInt).remainder(2).to(type);
    tensors.push_back({absl::StrCat(c10::toString(type), " matrix"), values.view({2, 3})});
    tensors.push_back({absl::StrCat(c10::toString(type), " scalar"), values[1]});
    tensors.push_back({absl::StrCat(c10::toString(type), " empty"), at::empty({0, 4}, type)});
  }
  ExpectRoundTrip(tensors);
}

TEST_F(SafetensorsTest, OtherStrides_AreWrittenInRowMajorOrder) {
  const at::Tensor images = at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  ExpectRoundTrip({
      {"channels_last", images.contiguous(at::MemoryFormat::ChannelsLast)},
      {"transposed", images.transpose(0, 3)},
      {"strided", images.slice(3, 1, 5, 2)},
      {"expanded", images.slice(0, 0, 1).expand({7, 3, 4, 5})},
  });
  ASSERT_OK_AND_ASSIGN(const SafetensorsContent content, ReadSafetensors(path_));
  EXPECT_TRUE(Bytes(content.tensors[0].tensor) == Bytes(images));
}

TEST_F(SafetensorsTest, TensorOfSeveralPieces_RoundTrips) {
  ExpectRoundTrip({{"large", at::arange(700'001, at::kInt)}, {"small", at::arange(3, at::kInt)}});
}

TEST_F(SafetensorsTest, NoTensors_KeepTheMetadata) {
  const std::map<std::string, std::string> metadata = {{"a", "1"}, {"b", "zwei\n"}};
  ASSERT_OK(WriteSafetensors(PosixFileSystem(), path_, {}, metadata));
  ASSERT_OK_AND_ASSIGN(const SafetensorsContent content, ReadSafetensors(path_));
  EXPECT_EQ(content.metadata, metadata);
  EXPECT_TRUE(content.tensors.empty());
}

TEST_F(SafetensorsTest, Digest_IsOfTheFileAndEqualForEqualTensors) {
  ASSERT_OK_AND_ASSIGN(const FileDigest first, Write(SomeTensors()));
  const std::string bytes = PosixFileSystem().Read(path_).value();
  EXPECT_EQ(first.size, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(first.crc32c, Crc32c(bytes));
  ASSERT_OK_AND_ASSIGN(const FileDigest second, Write(SomeTensors()));
  EXPECT_EQ(second.crc32c, first.crc32c);
}

TEST_F(SafetensorsTest, TensorsThatTheFormatCannotHold_AreInvalidAndNamed) {
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Write({{"hole", at::Tensor()}}), StatusIs(invalid, HasSubstr("'hole' is undefined")));
  EXPECT_THAT(Write({{"wave", at::empty({2}, at::kComplexFloat)}}),
              StatusIs(invalid, AllOf(HasSubstr("'wave'"), HasSubstr("ComplexFloat"))));
  EXPECT_THAT(Write({{"ghost", at::empty({2}, at::TensorOptions().device(at::kMeta))}}),
              StatusIs(invalid, HasSubstr("'ghost' is sparse or without data")));
  EXPECT_THAT(Write({{"a", at::empty({1})}, {"a", at::empty({1})}}), StatusIs(invalid, HasSubstr("the name is taken")));
}

TEST_F(SafetensorsTest, EveryTruncation_IsDataLossThatNamesTheFile) {
  ASSERT_OK(Write(SomeTensors()));
  const std::string bytes = PosixFileSystem().Read(path_).value();
  for (size_t size = 0; size < bytes.size(); ++size) {
    WriteRaw(bytes.substr(0, size));
    EXPECT_THAT(ReadSafetensors(path_), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_))) << size;
  }
  WriteRaw(bytes + "x");
  EXPECT_THAT(ReadSafetensors(path_), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
}

TEST_F(SafetensorsTest, LargeFileTruncatedAtEach64Bytes_IsDataLoss) {
  ASSERT_OK_AND_ASSIGN(const FileDigest digest, Write({{"t", at::arange(2000, at::kFloat)}}));
  for (int64_t size = digest.size - 1; size >= 0; size -= 64) {
    ASSERT_EQ(truncate(path_.c_str(), size), 0);
    EXPECT_THAT(ReadSafetensors(path_), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
  }
}

// The format has no checksum of values, so a flip may load; it must not crash, take other
// memory than the file says, or keep the digest.
TEST_F(SafetensorsTest, EveryBitFlip_ChangesTheDigestAndIsReadSafely) {
  ASSERT_OK_AND_ASSIGN(const FileDigest digest, Write(SomeTensors()));
  std::string bytes = PosixFileSystem().Read(path_).value();
  int refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const char mask = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    EXPECT_NE(Crc32c(bytes), digest.crc32c);
    WriteRaw(bytes);
    const absl::StatusOr<SafetensorsContent> content = ReadSafetensors(path_);
    bytes[bit / 8] ^= mask;
    if (!content.ok()) {
      EXPECT_THAT(content, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
      ++refused;
      continue;
    }
    size_t read_bytes = 0;
    for (const NamedTensor& named : content->tensors) read_bytes += named.tensor.nbytes();
    EXPECT_EQ(read_bytes, 27u);
  }
  EXPECT_GT(refused, 1000);  // most of the header is structure
}

TEST_F(SafetensorsTest, BoolsOtherThanZeroAndOne_AreRefused) {
  ASSERT_OK(Write({{"flags", FromBits<uint8_t>(at::kBool, {1, 0, 1})}}));
  std::string bytes = PosixFileSystem().Read(path_).value();
  bytes.back() = 2;
  WriteRaw(bytes);
  EXPECT_THAT(ReadSafetensors(path_),
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr(path_), HasSubstr("'flags': value is 2"))));
}

int64_t PeakMemoryKib() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST_F(SafetensorsTest, HugeClaims_AreRefusedBeforeMemoryIsTaken) {
  constexpr int64_t kTebibyte = int64_t{1} << 40;
  const int64_t before = PeakMemoryKib();
  const auto refused = StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_));

  WriteRaw(std::string("\0\0\0\0\0\0\0\x80", 8) + "{}");  // header length 2^63
  EXPECT_THAT(ReadSafetensors(path_), refused);
  WriteRaw(std::string("\x00\xE1\xF5\x05\0\0\0\0", 8) + "{}");  // 100,000,000 in a small file
  EXPECT_THAT(ReadSafetensors(path_), refused);
  WriteHeader("{'t':{'dtype':'U8','shape':[1099511627776],'data_offsets':[0,1099511627776]}}", 4);
  EXPECT_THAT(ReadSafetensors(path_), refused);
  WriteHeader(
      "{'a':{'dtype':'U8','shape':[1099511627776],'data_offsets':[0,1099511627776]},"
      "'b':{'dtype':'U8','shape':[1099511627776],'data_offsets':[0,1099511627776]}}",
      kTebibyte);
  EXPECT_THAT(ReadSafetensors(path_), refused);

  EXPECT_LT(PeakMemoryKib() - before, 64 * 1024);
}

TEST_F(SafetensorsTest, MissingFileAndDirectory_NameThePath) {
  EXPECT_THAT(ReadSafetensors(path_), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));
  EXPECT_THAT(ReadSafetensors(dir_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(dir_)));
}

TEST_F(SafetensorsTest, PowerLossAfterOk_KeepsTheFile) {
  FaultFileSystem faults(PosixFileSystem(), dir_);
  ASSERT_OK(WriteSafetensors(faults, path_, SomeTensors(), {}));
  ASSERT_OK(faults.SyncDirectory(dir_));
  ASSERT_OK(faults.DropUnsynced());
  ASSERT_OK_AND_ASSIGN(const SafetensorsContent content, ReadSafetensors(path_));
  ExpectSameTensors(content.tensors, SomeTensors());
}

using FaultCase = std::tuple<int, bool, Repeat>;
class SafetensorsFaultTest : public ::testing::TestWithParam<FaultCase> {};

TEST_P(SafetensorsFaultTest, FailingCall_IsReportedAtEveryCallAndThePreviousFileStands) {
  const auto [error, short_writes, repeat] = GetParam();
  const std::string dir = MakeTempDir("safetensors_fault");
  const std::string previous = dir + "/previous.safetensors";
  const std::string next = dir + "/next.safetensors";
  ASSERT_OK_AND_ASSIGN(const FileDigest expected, WriteSafetensors(PosixFileSystem(), previous, SomeTensors(), {}));
  int call = 1;
  for (bool finished = false; !finished; ++call) {
    FaultFileSystem faults(PosixFileSystem(), dir);
    faults.FailCall(call, error, repeat);
    faults.set_short_writes(short_writes);
    const absl::StatusOr<FileDigest> written = WriteSafetensors(faults, next, SomeTensors(), {});
    finished = faults.failed_calls() == 0;
    EXPECT_EQ(written.ok(), finished) << "call " << call;
    if (!finished) {
      EXPECT_THAT(written,
                  StatusIs(error == ENOSPC ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kDataLoss,
                           HasSubstr(next)));
    }
    ASSERT_OK(faults.DropUnsynced());
    EXPECT_EQ(Crc32c(PosixFileSystem().Read(previous).value()), expected.crc32c);
    ASSERT_OK_AND_ASSIGN(const SafetensorsContent content, ReadSafetensors(previous));
    ExpectSameTensors(content.tensors, SomeTensors());
  }
  // Create, header, three tensors, sync, close; the round after them finishes.
  EXPECT_EQ(call - 1, 8);
}

INSTANTIATE_TEST_SUITE_P(AllFaults, SafetensorsFaultTest,
                         ::testing::Combine(::testing::Values(ENOSPC, EIO), ::testing::Bool(),
                                            ::testing::Values(Repeat::kOnce, Repeat::kFromThenOn)));

}  // namespace
}  // namespace ssl
