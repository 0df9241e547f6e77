// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/torch_writer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <errno.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/mapped_tensor.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/io/torch_file.h"
#include "ssl/io/zip_reader.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Every dtype, a scalar, an empty tensor, views of one storage, a tensor in another memory format.
std::vector<NamedTensor> Tensors() {
  std::vector<NamedTensor> tensors;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                                    at::kChar, at::kByte, at::kBool}) {
    tensors.push_back({absl::StrCat("dtype.", c10::toString(type)), at::arange(5).to(type)});
  }
  const at::Tensor matrix = at::rand({3, 4});
  tensors.push_back({"scalar", at::full({}, 2.5)});
  tensors.push_back({"empty", at::empty({0, 3})});
  tensors.push_back({"transposed", matrix.t()});
  tensors.push_back({"slice", matrix.slice(1, 1, 3)});
  tensors.push_back({"channels_last", at::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast)});
  return tensors;
}

TEST(TorchWriter, ItsFilesReadBackBitwise) {
  const std::string path = MakeTempDir("torch") + "/a.pth";
  const std::vector<NamedTensor> tensors = Tensors();
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), path, tensors));
  ASSERT_OK_AND_ASSIGN(const TorchFile file, ReadTorchFile(path));
  ASSERT_EQ(file.root->items.size(), 2 * tensors.size());
  for (const NamedTensor& entry : tensors) {
    const TorchValue* value = file.root->Find(entry.name);
    ASSERT_NE(value, nullptr) << entry.name;
    const at::Tensor read = ViewTorchTensor(*value->tensor, file.owner);
    EXPECT_EQ(read.scalar_type(), entry.tensor.scalar_type()) << entry.name;
    EXPECT_TRUE(at::equal(read, entry.tensor)) << entry.name;
  }
}

TEST(TorchWriter, ValuesStartAtMultiplesOf64) {
  const std::string path = MakeTempDir("torch") + "/a.pth";
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), path, Tensors()));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, PosixFileSystem().Read(path));
  ASSERT_OK_AND_ASSIGN(const std::vector<ZipEntry> entries, ReadZipDirectory(bytes));
  EXPECT_EQ(entries.size(), Tensors().size() + 3);
  for (const ZipEntry& entry : entries) {
    EXPECT_EQ((entry.stored.data() - bytes.data()) % 64, 0) << entry.name;
    EXPECT_OK(CheckZipContent(entry, entry.stored));
  }
}

TEST(TorchWriter, EqualTensorsGiveEqualBytes) {
  const std::string dir = MakeTempDir("torch");
  const std::vector<NamedTensor> tensors = Tensors();
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), dir + "/a.pth", tensors));
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), dir + "/b.pth", tensors));
  EXPECT_EQ(*PosixFileSystem().Read(dir + "/a.pth"), *PosixFileSystem().Read(dir + "/b.pth"));
}

TEST(TorchWriter, NamesTheTensorThatCannotBeWritten) {
  const std::string path = MakeTempDir("torch") + "/a.pth";
  const auto error_of = [&path](const std::vector<NamedTensor>& tensors) {
    return WriteTorchFile(PosixFileSystem(), path, tensors);
  };
  EXPECT_THAT(error_of({{"x", at::Tensor()}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 'x' is undefined")));
  EXPECT_THAT(error_of({{"x", at::rand({2}, at::kComplexFloat)}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 'x': dtype is ComplexFloat")));
  EXPECT_THAT(error_of({{"x", at::rand({2})}, {"x", at::rand({2})}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 'x' occurs twice")));
  EXPECT_FALSE(PosixFileSystem().Exists(path));
}

TEST(TorchWriter, AFailedWriteLeavesTheOldFile) {
  const std::string dir = MakeTempDir("torch");
  const std::string path = dir + "/a.pth";
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), path, {{"old", at::rand({2})}}));
  const std::vector<NamedTensor> tensors = {{"new", at::rand({2})}};
  for (int call = 1;; ++call) {
    FaultFileSystem faults(PosixFileSystem(), dir);
    faults.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
    const absl::Status written = WriteTorchFile(faults, path, tensors);
    if (faults.failed_calls() == 0) break;
    EXPECT_THAT(written, StatusIs(absl::StatusCode::kResourceExhausted)) << call;
    EXPECT_OK(ReadTorchFile(path)) << call;
    EXPECT_EQ(PosixFileSystem().List(dir)->size(), 1u) << call;
  }
}

// Any change of any byte is found, or lies where it means nothing (padding, dates): the tensors are the same then.
TEST(TorchWriter, FlippedAndTornFilesAreFound) {
  const std::string dir = MakeTempDir("torch");
  const at::Tensor values = at::arange(40, at::kFloat);
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), dir + "/a.pth", {{"x", values}, {"y", at::full({3}, true, at::kBool)}}));
  ASSERT_OK_AND_ASSIGN(const std::string whole, PosixFileSystem().Read(dir + "/a.pth"));
  const std::string path = dir + "/b.pth";
  const auto write = [&path](const std::string& bytes) {
    auto file = PosixFileSystem().Create(path);
    EXPECT_OK((*file)->Append(bytes));
    EXPECT_OK((*file)->Close());
  };
  for (size_t size = 0; size < whole.size(); size += 7) {
    write(whole.substr(0, size));
    EXPECT_THAT(ReadTorchFile(path), StatusIs(absl::StatusCode::kDataLoss)) << size;
  }
  int found = 0;
  for (size_t position = 0; position < whole.size(); ++position) {
    std::string bytes = whole;
    bytes[position] = static_cast<char>(bytes[position] ^ (1 << (position % 8)));
    write(bytes);
    const auto file = ReadTorchFile(path);
    if (!file.ok()) {
      ++found;
      EXPECT_TRUE(absl::StrContains(file.status().message(), "b.pth")) << file.status();
      continue;
    }
    const TorchValue* x = file->root->Find("x");
    ASSERT_NE(x, nullptr) << position;
    EXPECT_TRUE(at::equal(ViewTorchTensor(*x->tensor, file->owner), values)) << position;
  }
  EXPECT_GT(found, 800);
}

}  // namespace
}  // namespace ssl
