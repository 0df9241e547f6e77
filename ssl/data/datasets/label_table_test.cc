// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/label_table.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WriteText(const std::string& text) {
  const std::string path = MakeTempDir("labels") + "/labels.txt";
  const auto file = PosixFileSystem().Create(path).value();
  EXPECT_OK(file->Append(text));
  EXPECT_OK(file->Close());
  return path;
}

std::string WriteInts(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  const std::string path = MakeTempDir("labels") + "/labels.npy";
  EXPECT_OK(WriteNpy<int64_t>(PosixFileSystem(), path, shape, values));
  return path;
}

// numpy.save of an array of strings with two letters each.
std::string WriteStrings(const std::vector<std::string>& names) {
  std::string header = "{'descr': '|S2', 'fortran_order': False, 'shape': (" + std::to_string(names.size()) + ",), }";
  header.append(117 - header.size(), ' ');
  header.push_back('\n');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header;
  for (const std::string& name : names) bytes += name;
  const std::string path = MakeTempDir("labels") + "/names.npy";
  const auto file = PosixFileSystem().Create(path).value();
  EXPECT_OK(file->Append(bytes));
  EXPECT_OK(file->Close());
  return path;
}

TEST(LabelTable, NpyInts_AreClasses) {
  ASSERT_OK_AND_ASSIGN(const LabelTable table, ReadLabelFile(PosixFileSystem(), WriteInts({3}, {4, 0, 4})));
  EXPECT_EQ(table.kind, LabelTable::Kind::kClass);
  EXPECT_EQ(table.size(), 3);
  EXPECT_THAT(table.values, ElementsAre(4, 0, 4));
}

TEST(LabelTable, NpyMatrix_HasARowForEachSample) {
  ASSERT_OK_AND_ASSIGN(const LabelTable table,
                       ReadLabelFile(PosixFileSystem(), WriteInts({2, 3}, {1, 0, -1, 0, 1, 1})));
  EXPECT_EQ(table.num_columns, 3);
  EXPECT_EQ(table.size(), 2);
  EXPECT_EQ(table.kind, LabelTable::Kind::kRow);
  EXPECT_THAT(table.of(1), ElementsAre(0, 1, 1));
}

TEST(LabelTable, SeveralFiles_GiveEachSampleAListOfClasses) {
  const std::string numpy = WriteInts({3}, {4, 0, 7});
  const std::string text = WriteText("1\n0\n2\n");
  ASSERT_OK_AND_ASSIGN(const LabelTable table, ReadLabelFiles(PosixFileSystem(), {numpy, text}));
  EXPECT_EQ(table.kind, LabelTable::Kind::kList);
  EXPECT_EQ(table.size(), 3);
  EXPECT_THAT(table.of(0), ElementsAre(4, 1));
  EXPECT_THAT(table.of(2), ElementsAre(7, 2));
  ASSERT_OK_AND_ASSIGN(const LabelTable one, ReadLabelFiles(PosixFileSystem(), {text}));
  EXPECT_EQ(one.kind, LabelTable::Kind::kClass);
}

TEST(LabelTable, SeveralFilesThatDoNotFit_AreNamed) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::string two = WriteText("1\n0\n");
  EXPECT_THAT(ReadLabelFiles(PosixFileSystem(), {two, WriteInts({3}, {1, 2, 3})}),
              StatusIs(invalid, AllOf(HasSubstr("/labels.npy holds 3 labels, expected 2, as "), HasSubstr(two))));
  EXPECT_THAT(ReadLabelFiles(PosixFileSystem(), {two, WriteInts({2, 2}, {1, 0, 0, 1})}),
              StatusIs(invalid, HasSubstr("/labels.npy: holds rows of labels, expected a class number for each")));
  EXPECT_THAT(ReadLabelFiles(PosixFileSystem(), {two, WriteText("cat\ndog\n")}),
              StatusIs(invalid, HasSubstr("/labels.txt: holds names, expected a class number for each sample")));
  EXPECT_THAT(ReadLabelFiles(PosixFileSystem(), {two, "no/labels.npy"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/labels.npy")));
}

TEST(LabelTable, Strings_AreNumberedInSortedOrder) {
  ASSERT_OK_AND_ASSIGN(const LabelTable npy, ReadLabelFile(PosixFileSystem(), WriteStrings({"do", "ca", "do"})));
  EXPECT_THAT(npy.values, ElementsAre(1, 0, 1));
  EXPECT_THAT(npy.class_names, ElementsAre("ca", "do"));
  ASSERT_OK_AND_ASSIGN(const LabelTable text,
                       ReadLabelFile(PosixFileSystem(), WriteText("dog\r\ncat\r\n10\r\ndog\r\n\n")));
  EXPECT_THAT(text.values, ElementsAre(2, 1, 0, 2));
}

TEST(LabelTable, LinesOfIntegers_AreClasses) {
  ASSERT_OK_AND_ASSIGN(const LabelTable table, ReadLabelFile(PosixFileSystem(), WriteText("10\n9\n10\n")));
  EXPECT_THAT(table.values, ElementsAre(10, 9, 10));
  EXPECT_THAT(table.class_names, ElementsAre());
}

TEST(LabelTable, FewLinesThatAreNoIntegers_AreNamedInsteadOfMakingAllOfThemNames) {
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteText("7\n1\ncat\n12\n3\n1.5\n0\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/labels.txt:3: 'cat', "), HasSubstr("/labels.txt:6: '1.5': 2 of 7 labels are "
                                                                            "no integers"))));
  std::string text;
  for (int i = 0; i < 20; ++i) text += i % 4 == 0 ? "x\n" : "5\n";
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteText(text)),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("txt:9: 'x', ...: 5 of 20 labels"))));
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteText("1\n2\n99999999999999999999\n")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("txt:3: '99999999999999999999'")));
}

TEST(LabelTable, WrongValues_AreNamedWithTheirSample) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteText("1\n-2\n")),
              StatusIs(invalid, AllOf(HasSubstr("/labels.txt: label of sample 1 is -2"), HasSubstr("from 0 on"))));
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteInts({2, 2}, {0, 1, 2, 0})),
              StatusIs(invalid, HasSubstr("label of sample 1 is 2, expected 1, 0 or -1 (unknown) for each class")));
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteInts({2, 1}, {0, 2})),
              StatusIs(invalid, HasSubstr("labels[:, 0]")));
}

TEST(LabelTable, WrongShapesAndFiles_AreRefused) {
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteInts({1, 1, 1}, {0})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("labels have the shape [1, 1, 1], expected [N] or [N, classes]")));
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteInts({2, 0}, {})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("labels have the shape [2, 0]")));
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), "no/labels.npy"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/labels.npy")));
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), "no/labels.txt"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/labels.txt")));
  EXPECT_THAT(ReadLabelFile(PosixFileSystem(), WriteText("a\n\nb\n")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/labels.txt:2: the line is empty")));
}

}  // namespace
}  // namespace ssl
