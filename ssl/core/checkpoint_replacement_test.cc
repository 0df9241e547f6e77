// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint that takes the place of an intact one: at no moment there is none.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<CheckpointPart> Parts(double value) {
  return {{"model.safetensors", {{"weight", at::full({4}, 1.0)}, {"lost", at::full({1}, kNan)}}},
          {"state_rank0.safetensors", {{"count", at::full({1}, value)}}}};
}

// NFS, for example.
class NoExchange : public FaultFileSystem {
 public:
  using FaultFileSystem::FaultFileSystem;
  absl::Status Exchange(const std::string& left, const std::string& right) override {
    return FileSystem::Exchange(left, right);
  }
};

// Calls back once, after the first manifest was read.
class ReaderOf : public FaultFileSystem {
 public:
  ReaderOf(FileSystem& base, const std::string& root, std::function<void()> then)
      : FaultFileSystem(base, root), then_(std::move(then)) {}
  absl::StatusOr<std::string> Read(const std::string& path) override {
    absl::StatusOr<std::string> bytes = FaultFileSystem::Read(path);
    if (absl::EndsWith(path, "MANIFEST.json") && then_ != nullptr) std::exchange(then_, nullptr)();
    return bytes;
  }

 private:
  std::function<void()> then_;
};

class CheckpointReplacementTest : public ::testing::Test {
 protected:
  CheckpointStore Store(FileSystem& file_system) {
    return CheckpointStore({directory_, 1, "hash"}, file_system, *communicator_);
  }
  // The only checkpoint, step_5, holds Parts(1).
  void Begin() {
    ASSERT_OK(posix_.RemoveAll(directory_));
    ASSERT_OK(posix_.CreateDirectories(directory_));
    ASSERT_OK(Store(posix_).Save(5, Parts(1.0)));
  }
  double Count(const std::string& file = "state_rank0.safetensors") {
    return (*Store(posix_).Load(5, file))[0].tensor[0].item<double>();
  }
  std::string File() { return *posix_.Identity(directory_ + "/step_5/MANIFEST.json"); }

  FileSystem& posix_ = PosixFileSystem();
  const std::string directory_ = MakeTempDir("replacement");
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(CheckpointReplacementTest, IntactOne_IsReplacedWhenAskedFor) {
  Begin();
  CheckpointStore store = Store(posix_);
  ASSERT_OK(store.Save(5, Parts(2.0), /*replaces=*/true));
  EXPECT_EQ(*store.NewestValid(), 5);
  EXPECT_EQ(Count(), 2.0);
  EXPECT_THAT(*posix_.List(directory_), ElementsAre("LATEST", "step_5"));
}

TEST_F(CheckpointReplacementTest, TheSameTensors_AreNotWrittenAgain) {
  Begin();
  const std::string before = File();
  ASSERT_OK(Store(posix_).Save(5, Parts(1.0), /*replaces=*/true));
  EXPECT_EQ(File(), before) << "a value that is not a number is the same as itself";
  std::vector<CheckpointPart> more = Parts(1.0);
  more[1].tensors.push_back({"another", at::full({1}, 1.0)});
  ASSERT_OK(Store(posix_).Save(5, more, /*replaces=*/true));
  EXPECT_NE(File(), before);
}

TEST_F(CheckpointReplacementTest, FailureAtAnyCall_LeavesOneOfTheTwo) {
  for (const auto repeat : {FaultFileSystem::Repeat::kOnce, FaultFileSystem::Repeat::kFromThenOn}) {
    bool failed = true;
    for (int call = 1; failed; ++call) {
      Begin();
      FaultFileSystem faulty(posix_, directory_);
      faulty.FailCall(call, ENOSPC, repeat);
      faulty.set_short_writes(true);
      const absl::Status saved = Store(faulty).Save(5, Parts(2.0), /*replaces=*/true);
      failed = faulty.failed_calls() > 0;
      CheckpointStore store = Store(posix_);
      ASSERT_EQ(*store.NewestValid(), 5) << "call " << call;
      ASSERT_THAT(Count(), AnyOf(1.0, 2.0));
      if (saved.ok()) {
        ASSERT_EQ(Count(), 2.0) << "call " << call;
      }
      ASSERT_OK(store.Save(5, Parts(2.0), /*replaces=*/true));
      ASSERT_EQ(Count(), 2.0);
      ASSERT_THAT(*posix_.List(directory_), ElementsAre("LATEST", "step_5")) << "call " << call;
    }
  }
}

TEST_F(CheckpointReplacementTest, PowerLossAtAnyCall_LeavesOneOfTheTwo) {
  bool crashed = true;
  for (int call = 1; crashed; ++call) {
    Begin();
    FaultFileSystem faulty(posix_, directory_);
    faulty.CrashAtCall(call);
    const absl::Status saved = Store(faulty).Save(5, Parts(2.0), /*replaces=*/true);
    crashed = faulty.failed_calls() > 0;
    ASSERT_OK(faulty.DropUnsynced());
    CheckpointStore store = Store(posix_);
    ASSERT_EQ(*store.NewestValid(), 5) << "call " << call;
    ASSERT_THAT(Count(), AnyOf(1.0, 2.0));
    if (saved.ok()) {
      ASSERT_EQ(Count(), 2.0) << "call " << call;
    }
    ASSERT_OK(store.Open());
    ASSERT_EQ(*store.NewestValid(), 5) << "call " << call;
  }
}

TEST_F(CheckpointReplacementTest, FileSystemThatCannotExchange_KeepsTheOldOne) {
  Begin();
  NoExchange files(posix_, directory_);
  ASSERT_OK(Store(files).Save(5, Parts(2.0), /*replaces=*/true));
  EXPECT_EQ(Count(), 1.0);
  EXPECT_THAT(*posix_.List(directory_), ElementsAre("LATEST", "step_5"));
}

// An evaluation beside the run: the files of the new one do not match the manifest of the old one.
TEST_F(CheckpointReplacementTest, ReaderInBetween_ReadsTheNewOne) {
  Begin();
  ReaderOf files(posix_, directory_, [this] { EXPECT_OK(Store(posix_).Save(5, Parts(2.0), /*replaces=*/true)); });
  std::string passed_over;
  ASSERT_OK_AND_ASSIGN(const int64_t newest, Store(files).FindNewestValid(&passed_over));
  EXPECT_EQ(newest, 5);
  EXPECT_EQ(passed_over, "");
  EXPECT_EQ(Count(), 2.0);
}

TEST_F(CheckpointReplacementTest, FullDisk_KeepsNothingOfTheNewOne) {
  Begin();
  FaultFileSystem full(posix_, directory_);
  full.FailCall(4, ENOSPC, FaultFileSystem::Repeat::kOnce);
  EXPECT_THAT(Store(full).Save(5, Parts(2.0), /*replaces=*/true), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(*posix_.List(directory_), ElementsAre("LATEST", "step_5"));
}

// Rank 0 alone would not see it.
TEST_F(CheckpointReplacementTest, WhatDiffersOnAnotherRankOnly_IsReplaced) {
  const absl::Status status = ThreadWorld(2, absl::Seconds(30)).Run([this](Communicator& communicator) -> absl::Status {
    CheckpointStore store({directory_, 1, "hash"}, posix_, communicator);
    const auto save = [&](double value) {
      const int64_t rank = communicator.rank();
      return store.Save(5,
                        {{absl::StrCat("state_rank", rank, ".safetensors"), {{"count", at::full({1}, rank * value)}}}},
                        /*replaces=*/true);
    };
    absl::Status saved = save(1.0);
    saved.Update(save(2.0));
    return saved;
  });
  ASSERT_OK(status);
  EXPECT_EQ(Count("state_rank1.safetensors"), 2.0);
}

}  // namespace
}  // namespace ssl
