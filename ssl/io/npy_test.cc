// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/npy.h"

#include <errno.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string WriteFile(absl::string_view bytes) {
  const std::string path = absl::StrCat(MakeTempDir("npy"), "/a.npy");
  auto file = PosixFileSystem().Create(path);
  EXPECT_OK(file);
  EXPECT_OK((*file)->Append(bytes));
  EXPECT_OK((*file)->Close());
  return path;
}

template <class T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A file of `version` whose header is `header` with `padding` spaces behind it.
std::string Npy(absl::string_view header, absl::string_view values, char version = 1, int padding = 0) {
  const std::string text = absl::StrCat(header, std::string(padding, ' '), "\n");
  std::string file = std::string("\x93NUMPY") + version + '\0';
  file += static_cast<char>(text.size() & 0xFF);
  file += static_cast<char>(text.size() >> 8);
  if (version > 1) file += std::string(2, '\0');
  return file + text + std::string(values);
}

std::string Header(absl::string_view descr, absl::string_view shape) {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", shape, ", }");
}

// What numpy 2 writes for numpy.save(f, numpy.array([[1, 2, 3], [4, 5, 6]], dtype="<i4")).
std::string FileOfNumPy() {
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
  file.resize(127, ' ');
  return file + "\n" + Raw<int32_t>({1, 2, 3, 4, 5, 6});
}

TEST(Npy, ReadsWhatNumPyWrites) {
  ASSERT_OK_AND_ASSIGN(const NpyArray array, ReadNpy(WriteFile(FileOfNumPy())));
  EXPECT_THAT(array.shape, ElementsAre(2, 3));
  EXPECT_EQ(array.size(), 6);
  ASSERT_OK_AND_ASSIGN(const auto values, NpyValues<int32_t>(array));
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Npy, ReadsEveryVersionAndAlignment) {
  for (const char version : {1, 2, 3}) {
    for (int padding = 0; padding < 16; ++padding) {
      const std::string values = Raw<double>({-0.5, 1e300});
      ASSERT_OK_AND_ASSIGN(const NpyArray array,
                           ReadNpy(WriteFile(Npy(Header("<f8", "(2,)"), values, version, padding))));
      ASSERT_OK_AND_ASSIGN(const auto read, NpyValues<double>(array));
      EXPECT_THAT(read, ElementsAre(-0.5, 1e300));
    }
  }
}

TEST(Npy, ReadsScalarsAndEmptyArrays) {
  ASSERT_OK_AND_ASSIGN(const NpyArray scalar, ReadNpy(WriteFile(Npy(Header("<f4", "()"), Raw<float>({2.5f})))));
  EXPECT_THAT(scalar.shape, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const auto value, NpyValues<float>(scalar));
  EXPECT_THAT(value, ElementsAre(2.5f));
  ASSERT_OK_AND_ASSIGN(const NpyArray empty, ReadNpy(WriteFile(Npy(Header("<f4", "(0, 7)"), ""))));
  EXPECT_EQ(empty.size(), 0);
}

TEST(Npy, WidensIntegers) {
  const auto ints = [](absl::string_view descr, const std::string& values) {
    const auto array = ReadNpy(WriteFile(Npy(Header(descr, "(2,)"), values)));
    EXPECT_OK(array);
    return *NpyInts(*array);
  };
  EXPECT_THAT(ints("<i4", Raw<int32_t>({-7, 8})), ElementsAre(-7, 8));
  EXPECT_THAT(ints("<i8", Raw<int64_t>({INT64_MIN, 8})), ElementsAre(INT64_MIN, 8));
  EXPECT_THAT(ints("|u1", Raw<uint8_t>({255, 0})), ElementsAre(255, 0));
  EXPECT_THAT(ints("|b1", Raw<uint8_t>({1, 0})), ElementsAre(1, 0));
}

TEST(Npy, DecodesStrings) {
  const std::vector<uint32_t> points = {'a', 'b', 0, 0xE9, 0, 0, 0x20AC, 0x1F600, 'z', 0, 0, 0};
  EXPECT_THAT(*ReadNpyStrings(WriteFile(Npy(Header("<U3", "(4,)"), Raw(points)))),
              ElementsAre("ab", "\xC3\xA9", "\xE2\x82\xAC\xF0\x9F\x98\x80z", ""));
  const std::string bytes("x.jpg\0\0y\0z\0\0\0\0", 14);
  EXPECT_THAT(*ReadNpyStrings(WriteFile(Npy(Header("|S7", "(2, 1)"), bytes))),
              ElementsAre("x.jpg", std::string("y\0z", 3)));
}

TEST(Npy, RefusesWhatIsNoCodePoint) {
  for (const uint32_t wrong : {0xD800u, 0x110000u, 0xFFFFFFFFu}) {
    EXPECT_THAT(ReadNpyStrings(WriteFile(Npy(Header("<U1", "(2,)"), Raw<uint32_t>({'a', wrong})))),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("value 1 is not Unicode")));
  }
}

TEST(Npy, RefusesByName) {
  const auto error_of = [](absl::string_view header) { return ReadNpy(WriteFile(Npy(header, ""))).status(); };
  EXPECT_THAT(error_of(Header("|O", "(1,)")), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("is a pickle")));
  EXPECT_THAT(error_of(Header(">f4", "(1,)")),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("dtype is '>f4', expected <f4")));
  EXPECT_THAT(error_of(Header("<c8", "(1,)")), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'<c8'")));
  EXPECT_THAT(error_of(Header("<U0", "(9,)")), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'<U0'")));
  EXPECT_THAT(error_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("structured")));
  EXPECT_THAT(error_of("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Fortran order")));
  EXPECT_THAT(ReadNpy(WriteFile(Npy(Header("<f4", "(1,)"), "", 4))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("format version is 4")));
}

TEST(Npy, RefusesMalformedHeaders) {
  for (const absl::string_view header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1", "{'descr': '<f4', 'other': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"}) {
    EXPECT_THAT(ReadNpy(WriteFile(Npy(header, Raw<float>({1.0f})))),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("header is")))
        << header;
  }
}

TEST(Npy, ChecksSizesBeforeAllocation) {
  for (const absl::string_view shape : {"(3,)", "(1,)", "(1000000000000000000,)", "(4611686018427387904, 4, 4)",
                                        "(0, 9223372036854775807, 9223372036854775807)"}) {
    EXPECT_THAT(ReadNpy(WriteFile(Npy(Header("<f4", shape), Raw<float>({1.0f, 2.0f})))),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("holds 8 bytes of values")))
        << shape;
  }
}

TEST(Npy, RefusesBoolsThatAreNone) {
  EXPECT_THAT(ReadNpy(WriteFile(Npy(Header("|b1", "(3,)"), "\1\0\2"))),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("holds")));
  EXPECT_THAT(ReadNpy(WriteFile(Npy(Header("|b1", "(3,)"), absl::string_view("\1\0\2", 3)))),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("value 2 is 2, expected 0 or 1")));
}

TEST(Npy, EveryTruncationIsAnError) {
  const std::string whole = FileOfNumPy();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ReadNpy(WriteFile(whole.substr(0, size))), StatusIs(absl::StatusCode::kDataLoss)) << size;
  }
}

TEST(Npy, NamesTheDtypeOfAWrongRequest) {
  ASSERT_OK_AND_ASSIGN(const NpyArray array, ReadNpy(WriteFile(FileOfNumPy())));
  EXPECT_THAT(NpyValues<float>(array),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.npy: dtype is <i4, expected <f4")));
  EXPECT_THAT(NpyStrings(array), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected strings")));
  ASSERT_OK_AND_ASSIGN(const NpyArray floats, ReadNpy(WriteFile(Npy(Header("<f4", "(1,)"), Raw<float>({1.0f})))));
  EXPECT_THAT(NpyInts(floats), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected integers")));
}

TEST(Npy, MissingFilesAreNotFound) {
  EXPECT_THAT(ReadNpyStrings(MakeTempDir("npy") + "/gone.npy"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("gone.npy")));
}

TEST(Npy, WritesWhatItReads) {
  const std::string path = MakeTempDir("npy") + "/a.npy";
  const std::vector<float> values = {1.0f, -2.0f, 3.5f, 0.0f, 1e-30f, 6.0f};
  ASSERT_OK(WriteNpy<float>(PosixFileSystem(), path, {2, 3}, values));
  ASSERT_OK_AND_ASSIGN(const NpyArray array, ReadNpy(path));
  EXPECT_THAT(array.shape, ElementsAre(2, 3));
  ASSERT_OK_AND_ASSIGN(const auto read, NpyValues<float>(array));
  EXPECT_EQ(read, absl::MakeConstSpan(values));

  ASSERT_OK(WriteNpy<int64_t>(PosixFileSystem(), path, {1}, {INT64_MAX}));
  ASSERT_OK_AND_ASSIGN(const NpyArray ints, ReadNpy(path));
  EXPECT_THAT(*NpyInts(ints), ElementsAre(INT64_MAX));
  ASSERT_OK(WriteNpy<double>(PosixFileSystem(), path, {}, {0.1}));
  ASSERT_OK_AND_ASSIGN(const std::string file, PosixFileSystem().Read(path));
  EXPECT_THAT(file, HasSubstr("'shape': (), }"));
  EXPECT_EQ((file.size() - sizeof(double)) % 64, 0u);
}

TEST(Npy, WrittenHeadersAreThoseOfNumPy) {
  const std::string path = MakeTempDir("npy") + "/a.npy";
  ASSERT_OK(WriteNpy<int64_t>(PosixFileSystem(), path, {2, 3}, {1, 2, 3, 4, 5, 6}));
  ASSERT_OK_AND_ASSIGN(std::string file, PosixFileSystem().Read(path));
  file[file.find("<i8") + 2] = '4';
  EXPECT_EQ(file.substr(0, 128), FileOfNumPy().substr(0, 128));
}

TEST(Npy, RefusesShapesThatDoNotFit) {
  const std::string path = MakeTempDir("npy") + "/a.npy";
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3}, {-1, -2}, {INT64_MAX, INT64_MAX}}) {
    EXPECT_THAT(WriteNpy<float>(PosixFileSystem(), path, shape, {1.0f, 2.0f}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not hold 2 values")));
  }
  EXPECT_FALSE(PosixFileSystem().Exists(path));
}

TEST(Npy, AFailedWriteLeavesTheOldFile) {
  const std::string dir = MakeTempDir("npy");
  const std::string path = dir + "/a.npy";
  ASSERT_OK(WriteNpy<float>(PosixFileSystem(), path, {1}, {1.0f}));
  for (int call = 1;; ++call) {
    FaultFileSystem faults(PosixFileSystem(), dir);
    faults.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
    const absl::Status written = WriteNpy<float>(faults, path, {1}, {2.0f});
    if (faults.failed_calls() == 0) break;
    EXPECT_THAT(written, StatusIs(absl::StatusCode::kResourceExhausted)) << call;
    ASSERT_OK_AND_ASSIGN(const NpyArray array, ReadNpy(path));
    EXPECT_EQ(array.size(), 1);
    EXPECT_EQ(PosixFileSystem().List(dir)->size(), 1u) << call;
  }
}

}  // namespace
}  // namespace ssl
