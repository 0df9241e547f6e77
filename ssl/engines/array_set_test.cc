// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/array_set.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/long_work.h"
#include "ssl/distributed/testing/thread_communicator.h"
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
  ASSERT_OK(ReplaceArrays(directory, SetOf(1), {}, PosixFileSystem(), *MakeLocalCommunicator()).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<WrittenArray> written,
                       ReplaceArrays(directory, SetOf(2), {}, PosixFileSystem(), *MakeLocalCommunicator()));
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
      ASSERT_OK(ReplaceArrays(directory, SetOf(1), {}, PosixFileSystem(), *MakeLocalCommunicator()).status());
      FaultFileSystem files(PosixFileSystem(), directory);
      if (crashes) {
        files.CrashAtCall(call);
      } else {
        files.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
      }
      const absl::Status status = ReplaceArrays(directory, SetOf(2), {}, files, *MakeLocalCommunicator()).status();
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
    ASSERT_OK(ReplaceArrays(directory, SetOf(1), {}, PosixFileSystem(), *MakeLocalCommunicator()).status());
    FaultFileSystem files(PosixFileSystem(), directory);
    files.CrashAtCall(call);
    ReplaceArrays(directory, SetOf(2), {}, files, *MakeLocalCommunicator()).status().IgnoreError();
    failed = files.failed_calls() > 0;
    ASSERT_OK(files.DropUnsynced());
    const std::vector<int64_t> values = ValuesIn(directory);
    EXPECT_LE(std::set<int64_t>(values.begin(), values.end()).size(), 1) << "call " << call;
  }
}

// Files of two ranks are one set: a disk that is full on one host alone leaves that of both.
TEST(ArraySetTest, FailureOfOneRankAtAnyCall_MixesNoSets) {
  int call = 1;
  for (bool failed = true; failed; ++call) {
    const std::string directory = MakeTempDir("arrays");
    FaultFileSystem faulty(PosixFileSystem(), directory);
    EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
      const std::string& file = kFiles[communicator.rank()];
      const auto replace = [&](int64_t value, FileSystem& file_system) {
        return ReplaceArrays(directory, {{file, at::full({3, 1}, value, at::kLong)}}, {}, file_system, communicator)
            .status();
      };
      SSL_RETURN_IF_ERROR(replace(1, PosixFileSystem()));
      if (communicator.rank() == 1) faulty.FailCall(call, ENOSPC, FaultFileSystem::Repeat::kOnce);
      const absl::Status status = replace(2, communicator.rank() == 1 ? faulty : PosixFileSystem());
      SSL_RETURN_IF_ERROR(communicator.Barrier());
      const std::vector<int64_t> values = ValuesIn(directory);
      EXPECT_LE(std::set<int64_t>(values.begin(), values.end()).size(), 1) << "call " << call;
      EXPECT_TRUE(!status.ok() || values == std::vector<int64_t>({2, 2})) << "call " << call;
      return absl::OkStatus();
    }));
    failed = faulty.failed_calls() > 0;
  }
  EXPECT_GT(call, 8);
}

// Takes long to remove and to rename.
class SlowFileSystem : public FaultFileSystem {
 public:
  SlowFileSystem(const std::string& root, LongWork* removing, LongWork* renaming, const Communicator& communicator)
      : FaultFileSystem(PosixFileSystem(), root),
        removing_(*removing),
        renaming_(*renaming),
        communicator_(communicator) {}

  absl::Status RemoveFile(const std::string& path) override {
    SSL_RETURN_IF_ERROR(removing_.Do(communicator_));
    return FaultFileSystem::RemoveFile(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    SSL_RETURN_IF_ERROR(renaming_.Do(communicator_));
    return FaultFileSystem::Rename(from, to);
  }

 private:
  LongWork& removing_;
  LongWork& renaming_;
  const Communicator& communicator_;
};

TEST(ArraySetTest, RemovingAndRenaming_MayTakeLongerThanAnOperationWaits) {
  const std::string directory = MakeTempDir("arrays");
  LongWork removing;
  LongWork renaming;
  const absl::Status status = ThreadWorld(2, absl::Seconds(10)).Run([&](Communicator& base) {
    CountingCommunicator for_renaming(base, &renaming.counts());
    CountingCommunicator for_both(for_renaming, &removing.counts());
    Communicator& communicator = base.rank() == 1 ? static_cast<Communicator&>(for_both) : base;
    const auto replace = [&](FileSystem& file_system) {
      const std::vector<NamedArray> arrays = {{kFiles[communicator.rank()], at::full({3, 1}, 1, at::kLong)}};
      return ReplaceArrays(directory, arrays, {}, file_system, communicator).status();
    };
    EXPECT_OK(replace(PosixFileSystem()));
    SlowFileSystem files(directory, &removing, &renaming, communicator);
    const absl::Status replaced = replace(files);
    for (LongWork* work : {&removing, &renaming}) work->End(communicator);
    return replaced;
  });
  EXPECT_OK(status);
  EXPECT_GE(removing.met(), LongWork::kMeetings);
  EXPECT_GE(renaming.met(), LongWork::kMeetings);
}

}  // namespace
}  // namespace ssl
