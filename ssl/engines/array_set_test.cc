// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/array_set.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> kFiles = {"predictions.npy", "targets.npy", "inds.npy"};

std::vector<NamedArray> SetOf(int64_t value) {
  std::vector<NamedArray> arrays;
  for (const std::string& file : kFiles) arrays.push_back({file, at::full({3, 1}, value, at::kLong)});
  return arrays;
}

// What stands in the files of the set that are there.
std::vector<int64_t> ValuesIn(const std::string& directory) {
  std::vector<int64_t> values;
  for (const std::string& file : kFiles) {
    const std::string path = absl::StrCat(directory, "/", file);
    if (!PosixFileSystem().Exists(path)) continue;
    const absl::StatusOr<NpyArray> array = ReadNpy(path);
    EXPECT_OK(array.status());
    if (array.ok()) values.push_back(NpyInts(*array).value().at(0));
  }
  return values;
}

TEST(ArraySetTest, Set_TakesThePlaceOfTheEarlierOne) {
  const std::string directory = MakeTempDir("arrays");
  ASSERT_OK(ReplaceArrays(directory, SetOf(1), {}, PosixFileSystem()).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<WrittenArray> written,
                       ReplaceArrays(directory, SetOf(2), {}, PosixFileSystem()));
  EXPECT_EQ(written.size(), kFiles.size());
  EXPECT_EQ(written[0].file, "predictions.npy");
  EXPECT_THAT(written[0].shape, ElementsAre(3, 1));
  EXPECT_THAT(ValuesIn(directory), ElementsAre(2, 2, 2));
  EXPECT_EQ(PosixFileSystem().List(directory)->size(), kFiles.size());
}

TEST(ArraySetTest, FullDiskOrCrashAtAnyCall_MixesNoSets) {
  for (const bool crashes : {false, true}) {
    int call = 1;
    for (bool failed = true; failed; ++call) {
      const std::string directory = MakeTempDir("arrays");
      ASSERT_OK(ReplaceArrays(directory, SetOf(1), {}, PosixFileSystem()).status());
      FaultFileSystem files(PosixFileSystem(), directory);
      if (crashes) {
        files.CrashAtCall(call);
      } else {
        files.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
      }
      const absl::Status status = ReplaceArrays(directory, SetOf(2), {}, files).status();
      failed = files.failed_calls() > 0;
      const std::vector<int64_t> values = ValuesIn(directory);
      EXPECT_LE(std::set<int64_t>(values.begin(), values.end()).size(), 1) << "call " << call;
      EXPECT_TRUE(!status.ok() || values == std::vector<int64_t>({2, 2, 2})) << "call " << call;
    }
    EXPECT_GT(call, 15);
  }
}

TEST(ArraySetTest, PowerLossAtAnyCall_MixesNoSets) {
  int call = 1;
  for (bool failed = true; failed; ++call) {
    const std::string directory = MakeTempDir("arrays");
    ASSERT_OK(ReplaceArrays(directory, SetOf(1), {}, PosixFileSystem()).status());
    FaultFileSystem files(PosixFileSystem(), directory);
    files.CrashAtCall(call);
    ReplaceArrays(directory, SetOf(2), {}, files).status().IgnoreError();
    failed = files.failed_calls() > 0;
    ASSERT_OK(files.DropUnsynced());
    const std::vector<int64_t> values = ValuesIn(directory);
    EXPECT_LE(std::set<int64_t>(values.begin(), values.end()).size(), 1) << "call " << call;
  }
}

}  // namespace
}  // namespace ssl
