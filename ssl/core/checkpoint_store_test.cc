// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpoint_store.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<CheckpointPart> Parts(double value) {
  return {{"model.safetensors", {{"weight", at::full({4}, value)}}}, {"rank0.safetensors", {{"w", at::full({1}, 2)}}}};
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  CheckpointStore Store(FileSystem& file_system, int64_t keep_last = 0) {
    return CheckpointStore({directory_, keep_last, "hash"}, file_system, *communicator_);
  }
  // The value in the model of step `iteration`.
  double Value(CheckpointStore& store, int64_t iteration) {
    return (*store.Load(iteration, "model.safetensors"))[0].tensor[0].item<double>();
  }
  void Damage(int64_t iteration, const std::string& file) {
    const std::string path = absl::StrCat(directory_, "/step_", iteration, "/", file);
    std::string bytes = *posix_.Read(path);
    bytes[bytes.size() - 1] ^= 1;
    ASSERT_OK((*posix_.Create(path))->Append(bytes));
  }
  std::vector<std::string> Names() { return *posix_.List(directory_); }

  FileSystem& posix_ = PosixFileSystem();
  const std::string directory_ = MakeTempDir("checkpoints");
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(CheckpointStoreTest, SavedCheckpoint_LoadsBack) {
  CheckpointStore store = Store(posix_);
  ASSERT_OK(store.Open());
  ASSERT_OK(store.Save(7, Parts(1.5)));
  ASSERT_OK_AND_ASSIGN(const int64_t newest, store.NewestValid());
  EXPECT_EQ(newest, 7);
  EXPECT_EQ(Value(store, 7), 1.5);
  EXPECT_EQ(*posix_.Read(directory_ + "/LATEST"), "step_7\n");
}

TEST_F(CheckpointStoreTest, EmptyOrMissingDirectory_IsNotFound) {
  CheckpointStore store = Store(posix_);
  EXPECT_THAT(store.NewestValid(), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK(posix_.RemoveAll(directory_));
  EXPECT_THAT(store.NewestValid(), StatusIs(absl::StatusCode::kNotFound, HasSubstr(directory_)));
}

TEST_F(CheckpointStoreTest, SameIterationTwice_KeepsTheFirst) {
  CheckpointStore store = Store(posix_);
  ASSERT_OK(store.Save(7, Parts(1.0)));
  ASSERT_OK(store.Save(7, Parts(2.0)));
  EXPECT_EQ(Value(store, 7), 1.0);
}

TEST_F(CheckpointStoreTest, KeepLast_RemovesTheOldest) {
  CheckpointStore store = Store(posix_, 2);
  for (const int64_t iteration : {5, 10, 15}) ASSERT_OK(store.Save(iteration, Parts(1.0)));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_15"));
}

TEST_F(CheckpointStoreTest, DamagedNewest_FallsBackToThePrevious) {
  CheckpointStore store = Store(posix_);
  for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  Damage(10, "model.safetensors");
  EXPECT_EQ(*store.NewestValid(), 5);
}

TEST_F(CheckpointStoreTest, MissingFileOrManifest_FallsBackToThePrevious) {
  CheckpointStore store = Store(posix_);
  for (const int64_t iteration : {5, 10, 15}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  ASSERT_OK(posix_.RemoveFile(store.StepDirectory(15) + "/rank0.safetensors"));
  ASSERT_OK(posix_.RemoveFile(store.StepDirectory(10) + "/MANIFEST.json"));
  EXPECT_EQ(*store.NewestValid(), 5);
}

TEST_F(CheckpointStoreTest, AllDamaged_IsDataLossThatNamesEach) {
  CheckpointStore store = Store(posix_);
  for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  for (const int64_t iteration : {5, 10}) Damage(iteration, "model.safetensors");
  const absl::Status status = store.NewestValid().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step_10/model.safetensors")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step_5/model.safetensors")));
}

TEST_F(CheckpointStoreTest, Open_RemovesWhatAnInterruptedSaveLeft) {
  ASSERT_OK(posix_.CreateDirectories(directory_ + "/step_3.tmp"));
  ASSERT_OK(posix_.CreateDirectories(directory_ + "/mine.tmp"));
  ASSERT_OK(Store(posix_).Open());
  EXPECT_THAT(Names(), ElementsAre("mine.tmp"));
}

TEST_F(CheckpointStoreTest, OtherNames_AreNoCheckpoints) {
  for (const char* name : {"step_007", "step_+5", "step_", "step_5x", "steps_5", "step_-1"}) {
    ASSERT_OK(posix_.CreateDirectories(absl::StrCat(directory_, "/", name)));
  }
  EXPECT_THAT(Store(posix_).NewestValid(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointStoreTest, DamagedCheckpoint_IsSavedAnew) {
  CheckpointStore store = Store(posix_);
  for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  Damage(10, "model.safetensors");
  ASSERT_OK(store.Save(10, Parts(11.0)));
  EXPECT_EQ(*store.NewestValid(), 10);
  EXPECT_EQ(Value(store, 10), 11.0);
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_5"));
}

TEST_F(CheckpointStoreTest, Retention_KeepsGoodOnesInPlaceOfDamagedOnes) {
  CheckpointStore store = Store(posix_, 2);
  for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  Damage(10, "model.safetensors");
  // Of a later process: what this one has verified, it does not read again.
  ASSERT_OK(Store(posix_, 2).Save(15, Parts(15)));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_15", "step_5"));
  Damage(15, "model.safetensors");
  EXPECT_EQ(*store.NewestValid(), 5);
  ASSERT_OK(store.Save(15, Parts(15)));
  ASSERT_OK(store.Save(20, Parts(20)));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_15", "step_20"));
}

TEST_F(CheckpointStoreTest, SetAside_GoesWhenTheRunHasPassedItAgain) {
  CheckpointStore store = Store(posix_);
  for (const int64_t iteration : {5, 10, 15}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  ASSERT_OK(store.MarkFinished(15));
  EXPECT_EQ(*posix_.Read(directory_ + "/FINISHED"), "step_15\n");
  Damage(15, "model.safetensors");
  ASSERT_OK(store.SetAsideAfter(5));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10.set_aside", "step_15.damaged", "step_5"));
  EXPECT_EQ(*posix_.Read(directory_ + "/LATEST"), "step_5\n");
  ASSERT_OK(store.SetAsideAfter(5));
  ASSERT_OK(store.Save(10, Parts(10)));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_15.damaged", "step_5"));
  ASSERT_OK(store.Save(15, Parts(15)));
  EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_15", "step_5"));
}

TEST_F(CheckpointStoreTest, RenamedCheckpoint_IsDamaged) {
  CheckpointStore store = Store(posix_);
  for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  ASSERT_OK(posix_.Rename(store.StepDirectory(10), store.StepDirectory(30)));
  EXPECT_EQ(*store.NewestValid(), 5);
  EXPECT_THAT(store.Verify(30).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("iteration is 10, expected 30")));
}

// A missing permission says nothing about the bytes: neither a fall-back nor a new start may follow from it.
TEST_F(CheckpointStoreTest, UnreadableCheckpoint_IsNotTakenForDamagedOrMissing) {
  for (const int64_t iteration : {5, 10}) ASSERT_OK(Store(posix_).Save(iteration, Parts(iteration)));
  for (int call = 1; call <= 4; ++call) {
    FaultFileSystem faulty(posix_, directory_);
    faulty.set_fault_reads(true);
    faulty.FailCall(call, EACCES, FaultFileSystem::Repeat::kOnce);
    EXPECT_THAT(Store(faulty).NewestValid(), StatusIs(absl::StatusCode::kPermissionDenied)) << "call " << call;
  }
}

TEST_F(CheckpointStoreTest, Config_IsSavedBesideThePartsAndVerified) {
  CheckpointStoreOptions options{directory_, 0, "hash", nullptr, "{\"a\": 1}\n"};
  CheckpointStore store(options, posix_, *communicator_);
  ASSERT_OK(store.Save(7, Parts(1.0)));
  EXPECT_EQ(*store.ReadConfig(7), "{\"a\": 1}\n");
  Damage(7, "config.json");
  EXPECT_THAT(store.NewestValid(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("config.json")));
  ASSERT_OK(Store(posix_).Save(8, Parts(1.0)));
  EXPECT_EQ(*store.ReadConfig(8), "");
}

// Whatever fails after the checkpoint has its name and was read back: it is saved, and the next save tidies up.
TEST_F(CheckpointStoreTest, FailureOfTidyingUp_LeavesTheCheckpointSaved) {
  bool failed = true;
  int tidied_later = 0;
  for (int call = 1; failed; ++call) {
    ASSERT_OK(posix_.RemoveAll(directory_));
    FaultFileSystem faulty(posix_, directory_);
    CheckpointStore store = Store(faulty, 2);
    for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
    faulty.FailCall(faulty.calls() + call, EACCES, FaultFileSystem::Repeat::kOnce);
    absl::Status saved;
    std::string log;
    {
      const CapturedLog captured;
      saved = store.Save(15, Parts(15.0));
      log = captured.Text();
    }
    failed = faulty.failed_calls() > 0;
    const bool has_name = posix_.Exists(store.StepDirectory(15));
    const bool is_tidy = Names() == std::vector<std::string>{"LATEST", "step_10", "step_15"};
    if (saved.ok() && failed) {
      ++tidied_later;
      EXPECT_TRUE(has_name) << "call " << call;
      EXPECT_THAT(log, HasSubstr("step_15 is saved")) << "call " << call;
    }
    EXPECT_EQ(saved.ok() && !failed, is_tidy && log.empty()) << "call " << call;
    faulty.StopFailing();
    ASSERT_OK(store.Save(20, Parts(20.0)));
    if (saved.ok()) {
      EXPECT_THAT(Names(), ElementsAre("LATEST", "step_15", "step_20")) << "call " << call;
      EXPECT_EQ(*posix_.Read(directory_ + "/LATEST"), "step_20\n");
    }
  }
  EXPECT_GE(tidied_later, 5) << "LATEST is written, renamed and synced, and step_5 renamed and removed";
}

// No other save may follow: the end of a run saves what it saved before.
TEST_F(CheckpointStoreTest, TheSameSaveAgain_TidiesUp) {
  for (int call = 1; call <= 20; ++call) {
    ASSERT_OK(posix_.RemoveAll(directory_));
    FaultFileSystem faulty(posix_, directory_);
    CheckpointStore store = Store(faulty, 2);
    for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
    faulty.FailCall(faulty.calls() + call, EACCES, FaultFileSystem::Repeat::kOnce);
    const bool saved = store.Save(15, Parts(15.0)).ok();
    faulty.StopFailing();
    ASSERT_OK(store.Save(15, Parts(15.0)));
    EXPECT_EQ(*posix_.Read(directory_ + "/LATEST"), "step_15\n") << "call " << call << ", " << saved;
    EXPECT_THAT(Names(), ElementsAre("LATEST", "step_10", "step_15")) << "call " << call << ", " << saved;
  }
}

// What this process has written or verified is not read again at each later save.
TEST_F(CheckpointStoreTest, Save_ReadsItsOwnFilesOnce) {
  FaultFileSystem counting(posix_, directory_);
  CheckpointStore store = Store(counting, 3);
  counting.set_fault_reads(true);
  std::vector<int> calls;
  for (int64_t iteration = 5; iteration <= 40; iteration += 5) {
    const int before = counting.calls();
    ASSERT_OK(store.Save(iteration, Parts(iteration)));
    calls.push_back(counting.calls() - before);
  }
  EXPECT_EQ(calls[1], calls[0]);
  EXPECT_EQ(calls[2], calls[0]);
  EXPECT_GT(calls[3], calls[2]) << "the first that removes one";
  for (size_t i = 4; i < calls.size(); ++i) EXPECT_EQ(calls[i], calls[3]);
  // Another process reads what it finds, once.
  CheckpointStore later = Store(counting, 3);
  const int before = counting.calls();
  ASSERT_OK(later.Save(45, Parts(45.0)));
  EXPECT_GT(counting.calls() - before, calls[3]);
  const int second = counting.calls();
  ASSERT_OK(later.Save(50, Parts(50.0)));
  EXPECT_EQ(counting.calls() - second, calls[3]);
}

// Fails every mutating call of a save in turn, once and from then on.
TEST_F(CheckpointStoreTest, FailureAtAnyCall_LeavesThePreviousOneAndNoPart) {
  ASSERT_OK(Store(posix_).Save(5, Parts(5.0)));
  for (const auto repeat : {FaultFileSystem::Repeat::kOnce, FaultFileSystem::Repeat::kFromThenOn}) {
    bool failed = true;
    for (int call = 1; failed; ++call) {
      FaultFileSystem faulty(posix_, directory_);
      faulty.FailCall(call, ENOSPC, repeat);
      faulty.set_short_writes(true);
      CheckpointStore store = Store(faulty);
      const absl::Status saved = store.Save(10, Parts(10.0));
      failed = faulty.failed_calls() > 0;
      faulty.StopFailing();
      ASSERT_OK(store.Open());
      ASSERT_OK_AND_ASSIGN(const int64_t newest, store.NewestValid());
      ASSERT_EQ(Value(store, newest), newest) << "call " << call;
      if (saved.ok()) {
        ASSERT_EQ(newest, 10) << "call " << call;
      }
      ASSERT_OK(posix_.RemoveAll(store.StepDirectory(10)));
    }
  }
}

// Power loss at every mutating call: unsynced bytes and names are gone.
TEST_F(CheckpointStoreTest, PowerLossAtAnyCall_LeavesAValidCheckpoint) {
  ASSERT_OK(Store(posix_).Save(5, Parts(5.0)));
  bool crashed = true;
  for (int call = 1; crashed; ++call) {
    FaultFileSystem faulty(posix_, directory_);
    faulty.CrashAtCall(call);
    const absl::Status saved = Store(faulty).Save(10, Parts(10.0));
    crashed = faulty.failed_calls() > 0;
    ASSERT_OK(faulty.DropUnsynced());
    CheckpointStore store = Store(posix_);
    ASSERT_OK(store.Open());
    ASSERT_OK_AND_ASSIGN(const int64_t newest, store.NewestValid());
    ASSERT_EQ(Value(store, newest), newest) << "call " << call;
    if (saved.ok()) {
      ASSERT_EQ(newest, 10) << "call " << call;
    }
    ASSERT_OK(posix_.RemoveAll(store.StepDirectory(10)));
  }
}

TEST_F(CheckpointStoreTest, FullOrLostDisk_IsNamed) {
  for (const auto& [error, code] : {std::pair(ENOSPC, absl::StatusCode::kResourceExhausted),
                                    std::pair(ENOENT, absl::StatusCode::kFailedPrecondition)}) {
    FaultFileSystem faulty(posix_, directory_);
    faulty.FailCall(3, error, FaultFileSystem::Repeat::kFromThenOn);
    EXPECT_THAT(Store(faulty).Save(10, Parts(1.0)), StatusIs(code, HasSubstr("step_10 not saved: ")));
  }
}

TEST_F(CheckpointStoreTest, NameThatNoRowHolds_IsRefused) {
  EXPECT_THAT(Store(posix_).Save(10, {{std::string(129, 'x'), {{"w", at::full({1}, 1.0)}}}}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("file name is too long: xxx")));
  EXPECT_TRUE(Names().empty());
}

// Another run may have that place by then.
TEST_F(CheckpointStoreTest, DirectoryThatIsNoLongerHeld_IsNotChanged) {
  const std::string run = MakeTempDir("run");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> held, RunDirectory::Open(run, posix_, *communicator_));
  CheckpointStore store({CheckpointDirectory(run), 1, "hash", held.get()}, posix_, *communicator_);
  for (const int64_t iteration : {5, 10}) ASSERT_OK(store.Save(iteration, Parts(iteration)));
  ASSERT_OK(posix_.RemoveFile(run + "/.lock"));
  for (const absl::Status& status :
       {store.Save(15, Parts(15.0)), store.MarkFinished(10), store.SetAsideAfter(5), store.RemoveAll()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was removed or replaced")));
  }
  EXPECT_THAT(*posix_.List(CheckpointDirectory(run)), ElementsAre("LATEST", "step_10"));
  EXPECT_EQ(Value(store, 10), 10.0) << "reading goes on";
}

TEST_F(CheckpointStoreTest, DirectoryThatGoesInASave_IsNamedAndNotMadeAnew) {
  int call = 1;
  for (bool has_gone = true; has_gone; ++call) {
    const std::string run = MakeTempDir("run");
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RunDirectory> held, RunDirectory::Open(run, posix_, *communicator_));
    ASSERT_OK(posix_.CreateDirectories(CheckpointDirectory(run)));
    FaultFileSystem moving(posix_, directory_);
    has_gone = false;
    moving.ActAtCall(call, [&] { has_gone = std::rename(run.c_str(), (run + "_before").c_str()) == 0; });
    CheckpointStore store({CheckpointDirectory(run), 1, "hash", held.get()}, moving, *communicator_);
    const absl::Status saved = store.Save(10, Parts(10.0));
    EXPECT_TRUE(!saved.ok() || posix_.Exists(CheckpointDirectory(run + (has_gone ? "_before" : "")) + "/step_10"));
    EXPECT_THAT(saved, AnyOf(IsOk(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was removed or "))));
    EXPECT_FALSE(posix_.Exists(CheckpointDirectory(run) + "/step_10.tmp")) << call;
  }
}

TEST_F(CheckpointStoreTest, TwoRanks_WriteOneCheckpoint) {
  const absl::Status status = ThreadWorld(2, absl::Seconds(30)).Run([this](Communicator& communicator) -> absl::Status {
    CheckpointStore store({directory_, 2, "hash"}, posix_, communicator);
    SSL_RETURN_IF_ERROR(store.Open());
    std::vector<CheckpointPart> parts = {
        {absl::StrCat("rank", communicator.rank(), ".safetensors"), {{"w", at::full({1}, communicator.rank())}}}};
    if (communicator.rank() == 0) parts.push_back({"model.safetensors", {{"weight", at::full({4}, 1.0)}}});
    SSL_RETURN_IF_ERROR(store.Save(3, parts));
    SSL_ASSIGN_OR_RETURN(const int64_t newest, store.NewestValid());
    EXPECT_EQ(newest, 3);
    return absl::OkStatus();
  });
  ASSERT_OK(status);
  EXPECT_THAT(*posix_.List(directory_ + "/step_3"),
              ElementsAre("MANIFEST.json", "model.safetensors", "rank0.safetensors", "rank1.safetensors"));
}

TEST_F(CheckpointStoreTest, FailureOnOneRank_FailsBothAndCommitsNothing) {
  FaultFileSystem faulty(posix_, directory_);
  faulty.FailCall(1, EIO, FaultFileSystem::Repeat::kFromThenOn);
  std::vector<absl::Status> statuses(2);
  ASSERT_OK(ThreadWorld(2, absl::Seconds(30)).Run([&](Communicator& communicator) {
    FileSystem& file_system = communicator.rank() == 1 ? static_cast<FileSystem&>(faulty) : posix_;
    CheckpointStore store({directory_, 2, "hash"}, file_system, communicator);
    statuses[communicator.rank()] =
        store.Save(3, {{absl::StrCat("rank", communicator.rank(), ".safetensors"), {{"w", at::full({1}, 1)}}}});
    return absl::OkStatus();
  }));
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kAborted, HasSubstr("writing a checkpoint failed on rank 1 ")));
  EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(Names().empty());
}

}  // namespace
}  // namespace ssl
