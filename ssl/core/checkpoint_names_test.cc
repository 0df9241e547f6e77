// SPDX-License-Identifier: Apache-2.0
//
// Names alone, and what a store keeps because of them.
#include "ssl/core/checkpoint_names.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

class CheckpointNamesTest : public ::testing::Test {
 protected:
  CheckpointStore Store(FileSystem& file_system, int64_t keep_last) {
    return CheckpointStore({directory_, keep_last, "hash"}, file_system, *communicator_);
  }
  CheckpointStore Store(int64_t keep_last) { return Store(posix_, keep_last); }

  static absl::Status Save(CheckpointStore& store, int64_t iteration) {
    return store.Save(iteration, {{"model.safetensors", {{"weight", at::full({4}, iteration)}}}});
  }
  std::vector<int64_t> Steps() { return *Store(0).Iterations(); }

  FileSystem& posix_ = PosixFileSystem();
  const std::string directory_ = MakeTempDir("names");
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

// A training starts: who has given a name knows what it stands for.
TEST_F(CheckpointNamesTest, NameOfNoCheckpoint_GoesWhenTheStoreIsOpened) {
  CheckpointNames names(directory_, posix_);
  ASSERT_OK(names.Move("rolling", 7, true));
  for (const char* text : {"", "step_x\n", "\x01\x02\x03\x04\x05\x06\x07\x08"}) {
    ASSERT_OK(WriteFileAtomically(posix_, directory_ + "/best.step", text));
    EXPECT_THAT(names.All(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("best.step")));
    const CapturedLog log;
    ASSERT_OK(Store(2).Open());
    EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("best.step was damaged")));
    EXPECT_THAT(*names.All(), ElementsAre(Pair("rolling", 7)));
  }
}

TEST_F(CheckpointNamesTest, NameThatGoesMeanwhile_IsNone) {
  CheckpointNames names(directory_, posix_);
  ASSERT_OK(names.Move("best", 5, false));
  ASSERT_OK(names.Move("rolling", 7, false));
  FaultFileSystem beside(posix_, directory_);
  beside.set_fault_reads(true);
  constexpr int kReadOfBest = 2;  // after List
  beside.ActAtCall(kReadOfBest, [&] { ASSERT_OK(names.Drop("best")); });
  EXPECT_THAT(*CheckpointNames(directory_, beside).All(), ElementsAre(Pair("rolling", 7)));
}

TEST_F(CheckpointNamesTest, Move_SaysWhichHasNoNameAnyMore) {
  CheckpointNames names(directory_, posix_);
  EXPECT_EQ(names.Move("best", 5, false)->iteration, -1);
  EXPECT_EQ(names.Move("best", 5, false)->iteration, -1);
  EXPECT_EQ(names.Move("rolling", 5, false)->iteration, -1);
  EXPECT_EQ(names.Move("best", 7, false)->iteration, -1) << "5 is the rolling one";
  EXPECT_EQ(names.Move("rolling", 7, true)->iteration, 5);
  EXPECT_THAT(*names.All(), ElementsAre(Pair("best", 7), Pair("rolling", 7)));
  EXPECT_EQ(*posix_.Read(directory_ + "/best.step"), "step_7\n");
  EXPECT_EQ(*posix_.Read(directory_ + "/rolling.step"), "step_7\nreplaceable\n");
  ASSERT_OK(names.Drop("best"));
  ASSERT_OK(names.Drop("best"));
  EXPECT_THAT(*names.All(), ElementsAre(Pair("rolling", 7)));
}

TEST_F(CheckpointNamesTest, Replaceable_IsWhatANameSaysUntilItIsKept) {
  CheckpointNames names(directory_, posix_);
  ASSERT_OK(names.Move("rolling", 5, true));
  ASSERT_OK(names.Move("other", 7, true));
  EXPECT_TRUE(*names.IsReplaceable(5));
  ASSERT_OK(names.Keep(5));
  EXPECT_FALSE(*names.IsReplaceable(5));
  EXPECT_TRUE(*names.IsReplaceable(7));
  EXPECT_FALSE(names.Move("rolling", 9, true)->replaceable);
  EXPECT_TRUE(names.Move("other", 9, true)->replaceable);
}

TEST_F(CheckpointNamesTest, NamesThatAreNone_AreRefusedAndFilesThatSayNothingAreNamed) {
  CheckpointNames names(directory_, posix_);
  for (const char* name : {"", "a/b", "a b", "\n"}) {
    EXPECT_THAT(names.Move(name, 5, false),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected letters")));
  }
  EXPECT_THAT(*posix_.List(directory_), IsEmpty());
  ASSERT_OK((*posix_.Create(directory_ + "/best.step"))->Append("step_x"));
  EXPECT_THAT(names.All(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(directory_ + "/best.step")));
}

TEST_F(CheckpointNamesTest, KeepLast_NeverCountsNorRemovesWhatHasAName) {
  {
    CheckpointStore store = Store(2);
    for (const int64_t iteration : {5, 10}) ASSERT_OK(Save(store, iteration));
    ASSERT_OK(store.SetName("best", 5, /*replaceable=*/false));
    for (const int64_t iteration : {15, 20}) ASSERT_OK(Save(store, iteration));
  }
  EXPECT_THAT(Steps(), ElementsAre(5, 15, 20));
  CheckpointStore restarted = Store(2);
  ASSERT_OK(restarted.Open());
  for (const int64_t iteration : {25, 30}) ASSERT_OK(Save(restarted, iteration));
  EXPECT_THAT(Steps(), ElementsAre(5, 25, 30));
  ASSERT_OK(restarted.SetName("best", 30, /*replaceable=*/false));
  ASSERT_OK(Save(restarted, 35));
  EXPECT_THAT(Steps(), ElementsAre(25, 30, 35)) << "25 and 35 are the newest two without a name";
  ASSERT_OK(Save(restarted, 40));
  EXPECT_THAT(Steps(), ElementsAre(30, 35, 40));
}

TEST_F(CheckpointNamesTest, Replaceable_GoesWhenItsLastNameMovesOn) {
  CheckpointStore store = Store(0);
  for (const int64_t iteration : {5, 10, 15, 20, 25}) ASSERT_OK(Save(store, iteration));
  ASSERT_OK(store.SetName("rolling", 5, true));
  ASSERT_OK(store.SetName("best", 10, false));
  ASSERT_OK(store.SetName("rolling", 10, true));
  EXPECT_THAT(Steps(), ElementsAre(10, 15, 20, 25));
  ASSERT_OK(store.SetName("rolling", 15, true));
  ASSERT_OK(store.SetName("rolling", 15, true));
  EXPECT_THAT(Steps(), ElementsAre(10, 15, 20, 25)) << "10 is the best one";
  ASSERT_OK(store.Keep(15));
  ASSERT_OK(store.SetName("rolling", 20, true));
  EXPECT_THAT(Steps(), ElementsAre(10, 15, 20, 25)) << "15 is kept";
  ASSERT_OK(store.SetName("rolling", 25, false));
  EXPECT_THAT(Steps(), ElementsAre(10, 15, 25));
}

TEST_F(CheckpointNamesTest, CheckpointsThatAreSetAside_LoseTheirNames) {
  CheckpointStore store = Store(0);
  for (const int64_t iteration : {5, 10, 15}) ASSERT_OK(Save(store, iteration));
  ASSERT_OK(store.SetName("rolling", 5, false));
  ASSERT_OK(store.SetName("best", 10, false));
  ASSERT_OK(store.SetAsideAfter(5));
  EXPECT_THAT(*store.Names(), ElementsAre(Pair("rolling", 5)));
}

// The process ends before any one of the calls, and starts again.
TEST_F(CheckpointNamesTest, CrashAtAnyCall_LeavesTheNameWithAnIntactCheckpoint) {
  for (int call = 1;; ++call) {
    ASSERT_OK(posix_.RemoveAll(directory_));
    ASSERT_OK(posix_.CreateDirectories(directory_));
    CheckpointStore before = Store(1);
    for (const int64_t iteration : {5, 10}) {
      ASSERT_OK(Save(before, iteration));
      ASSERT_OK(before.SetName("best", iteration, true));
    }
    FaultFileSystem faults(posix_, directory_);
    faults.CrashAtCall(call);
    CheckpointStore store = Store(faults, 1);
    const absl::Status saved = Save(store, 15);
    if (saved.ok()) store.SetName("best", 15, true).IgnoreError();
    ASSERT_OK(faults.DropUnsynced());
    CheckpointStore after = Store(1);
    ASSERT_OK(after.Open());
    ASSERT_OK_AND_ASSIGN(const auto names, after.Names());
    ASSERT_THAT(names, ElementsAre(Pair("best", AnyOf(10, 15)))) << call;
    EXPECT_OK(after.Verify(names.at("best")).status()) << call;
    EXPECT_THAT(*after.FindNewestValid(), AnyOf(10, 15)) << call;
    EXPECT_THAT(*posix_.List(directory_), Not(Contains(HasSubstr(".tmp")))) << call;
    if (faults.calls() < call) break;
  }
}

}  // namespace
}  // namespace ssl
