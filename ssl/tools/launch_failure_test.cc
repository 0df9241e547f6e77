// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/launch_failure.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/process_identity.h"
#include "ssl/engines/results_file.h"
#include "ssl/io/atomic_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

class LaunchFailureTest : public ::testing::Test {
 protected:
  // Ranks 0 and 1, pids 100 and 101, of which the second failed first.
  static LaunchOutcome Outcome(const RankEnd& failed) {
    LaunchOutcome outcome;
    outcome.ends = {failed, {0, 100, 7}};
    outcome.first_failure = failed;
    outcome.exit_code = failed.code();
    outcome.restarts = 2;
    return outcome;
  }
  static RankEnd Killed() { return {1, 101, 0, SIGKILL}; }

  void Leave(const std::string& name, const std::string& text) {
    ASSERT_OK(files_.CreateDirectories(ParentDirectory(absl::StrCat(directory_, "/", name))));
    ASSERT_OK(WriteFileAtomically(files_, absl::StrCat(directory_, "/", name), text));
  }

  // A checkpoint that verifies, of the training in `folder` of the run directory.
  void Save(const std::string& folder, int64_t step) {
    const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
    CheckpointStore store({CheckpointDirectory(directory_ + folder), 0, ""}, files_, *communicator);
    ASSERT_OK(store.Open());
    ASSERT_OK(store.Save(step, {{"model.safetensors", {}}}));
  }

  ConfigNode Write(const LaunchOutcome& outcome) {
    WriteLaunchFailure(directory_, "train", 2, outcome, files_);
    return ReadResults(absl::StrCat(directory_, "/failure.json"), files_).value_or(ConfigNode());
  }

  static std::string Text(const ConfigNode& report, const std::string& path) {
    const ConfigNode* node = report.FindPath(path);
    return node == nullptr ? "(none)" : node->text();
  }

  const std::string directory_ = MakeTempDir("launch");
  FileSystem& files_ = PosixFileSystem();
};

TEST_F(LaunchFailureTest, ARankThatLeftNoReport_IsNamedWithTheStepOfTheOthers) {
  Leave("failure.json", R"({"code": "UNAVAILABLE", "errno": 5, "engine": "train", "phase": "training", "step": 12,
                            "epoch": 1, "rank": 0, "pid": 100, "last_checkpoint": {"step": 9, "directory": "d"}})");
  const ConfigNode report = Write(Outcome(Killed()));
  EXPECT_EQ(Text(report, "rank"), "1");
  EXPECT_EQ(Text(report, "pid"), "101");
  EXPECT_EQ(Text(report, "code"), "SIGNAL");
  EXPECT_EQ(Text(report, "signal"), "9");
  EXPECT_EQ(Text(report, "exit_code"), "137");
  EXPECT_THAT(Text(report, "message"), HasSubstr("rank 1 (pid 101) was ended by SIGKILL"));
  EXPECT_EQ(Text(report, "step"), "12");
  EXPECT_EQ(Text(report, "last_checkpoint.step"), "9");
  EXPECT_EQ(Text(report, "world_size"), "2");
  EXPECT_EQ(Text(report, "restarts"), "2");
  EXPECT_EQ(Text(report, "errno"), "(none)");  // of the other rank's error
}

TEST_F(LaunchFailureTest, ARanksOwnReportTakesThePlaceOfRankZeros) {
  Leave("failure.json", R"({"code": "UNAVAILABLE", "rank": 0, "pid": 100})");
  Leave("logs/rank1_failure.json", R"({"code": "DATA_LOSS", "message": "torn", "rank": 1, "pid": 101, "step": 4})");
  const ConfigNode report = Write(Outcome({1, 101, 4}));
  EXPECT_EQ(Text(report, "code"), "DATA_LOSS");
  EXPECT_EQ(Text(report, "message"), "torn");
  EXPECT_EQ(Text(report, "step"), "4");
}

TEST_F(LaunchFailureTest, WithoutAnyReport_TheLockTellsWhoseTheDirectoryIs) {
  Leave(".lock", "process 100 on host a\n");
  Save("", 30);
  Leave("checkpoints/step_40/model.safetensors", "");  // damaged
  const ConfigNode report = Write(Outcome(Killed()));
  EXPECT_EQ(Text(report, "rank"), "1");
  EXPECT_EQ(Text(report, "step"), "(none)");
  EXPECT_EQ(Text(report, "last_checkpoint.step"), "30");
  EXPECT_EQ(SavedIn(directory_, files_).newest, "step 40");
}

TEST_F(LaunchFailureTest, ADiskThatIsFull_HasNoRoomForTheNextStartEither) {
  const auto no_room = [this](int exit_code, int error) {
    Leave("logs/rank1_failure.json", absl::StrCat(R"({"rank": 1, "pid": 101, "errno": )", error, "}"));
    return NoRoom(Outcome({1, 101, exit_code}), directory_, "train", files_);
  };
  EXPECT_EQ(no_room(5, ENOSPC),
            absl::StrCat("there is no room for what the run saves in ", directory_, ": No space left on device"));
  EXPECT_THAT(no_room(5, EDQUOT), HasSubstr("quota"));
  EXPECT_THAT(no_room(5, EFBIG), HasSubstr("File too large"));
  EXPECT_EQ(no_room(5, EIO), "") << "the device may work again";
  EXPECT_EQ(no_room(4, ENOSPC), "");
  EXPECT_EQ(NoRoom(Outcome({1, 102, 5}), directory_, "train", files_), "") << "another start's report";
}

TEST_F(LaunchFailureTest, ADirectoryThatIsNotLockedByTheseRanks_IsLost) {
  const LaunchOutcome of_storage = Outcome({1, 101, 5});
  const auto lost = [this](const LaunchOutcome& outcome, bool had_locked) {
    return LostDirectory(outcome, had_locked, directory_, files_);
  };
  EXPECT_THAT(lost(of_storage, false), HasSubstr(directory_ + " is not that of these ranks"));
  EXPECT_EQ(lost(Outcome(Killed()), false), "") << "they failed before they locked it";
  EXPECT_THAT(lost(Outcome(Killed()), true), HasSubstr("is not that of these ranks"));
  Leave(".lock", "process 100 on host a\n");
  EXPECT_TRUE(HasLocked(100, directory_, files_));
  EXPECT_EQ(lost(of_storage, true), "") << "full, for one";
  EXPECT_EQ(lost(Outcome(Killed()), true), "");
  Leave(".lock", "process 1000 on host a\n");
  EXPECT_FALSE(HasLocked(100, directory_, files_));
  EXPECT_THAT(lost(of_storage, false), HasSubstr("is not that of these ranks"));
}

TEST_F(LaunchFailureTest, AnotherRunsDirectoryIsLeftAlone) {
  Leave(".lock", "process 1000 on host a\n");
  Leave("failure.json", R"({"code": "UNAVAILABLE", "rank": 0, "pid": 99})");
  Leave("logs/rank1_failure.json", R"({"code": "INTERNAL", "rank": 1, "pid": 98})");
  EXPECT_EQ(Text(Write(Outcome(Killed())), "pid"), "99");
}

// Ranks of another host, whose launcher knows the culprit; these have only seen its connection break.
TEST_F(LaunchFailureTest, RanksThatBlameAnotherHostsLeaveItsReport) {
  constexpr char kCulprit[] = R"({"code": "SIGNAL", "signal": 9, "exit_code": 137, "rank": 1, "pid": 101})";
  Leave("failure.json", kCulprit);
  Leave("logs/rank3_failure.json", R"({"code": "UNAVAILABLE", "exit_code": 7, "rank": 3, "pid": 103})");
  LaunchOutcome without_rank_zero;
  without_rank_zero.ends = {{3, 103, 7}, {2, 102, 7}};
  without_rank_zero.first_failure = without_rank_zero.ends[0];
  EXPECT_EQ(Text(Write(without_rank_zero), "code"), "SIGNAL");

  // Rank 0 on this host, and the culprit on the other.
  Leave("failure.json", R"({"code": "SIGNAL", "signal": 9, "exit_code": 137, "rank": 3, "pid": 103})");
  Leave("logs/rank1_failure.json", R"({"code": "UNAVAILABLE", "exit_code": 7, "rank": 1, "pid": 101})");
  EXPECT_EQ(Text(Write(Outcome({1, 101, 7})), "rank"), "3");
}

TEST_F(LaunchFailureTest, RanksThatBlameAnotherAreNamedWhereNobodyKnowsMore) {
  Leave("failure.json", R"({"code": "UNAVAILABLE", "exit_code": 7, "rank": 0, "pid": 100})");
  Leave("logs/rank1_failure.json", R"({"code": "UNAVAILABLE", "exit_code": 7, "rank": 1, "pid": 101})");
  EXPECT_EQ(Text(Write(Outcome({1, 101, 7})), "rank"), "1");
}

TEST_F(LaunchFailureTest, AMistakeIsReportedByTheRanksAlone) {
  Leave(".lock", "process 100 on host a\n");
  EXPECT_TRUE(Write(Outcome({1, 101, 2})).entries().empty());
}

// Of the last save, which a thread finished beside the handler that wrote the report.
TEST_F(LaunchFailureTest, ARankThatASignalEnded_MayHaveSavedMoreThanItSays) {
  constexpr char kReport[] =
      R"({"code": "SIGNAL", "signal": 2, "engine": "train", "rank": 1, "pid": 101, "last_checkpoint": {"step": 9}})";
  Leave("failure.json", R"({"code": "UNAVAILABLE", "rank": 0, "pid": 100})");
  Save("", 9);
  Leave("logs/rank1_failure.json", kReport);
  EXPECT_EQ(Text(Write(Outcome(Killed())), "last_checkpoint.step"), "9");
  Save("", 12);
  Leave("logs/rank1_failure.json", kReport);
  EXPECT_EQ(Text(Write(Outcome(Killed())), "last_checkpoint.step"), "12");
  Leave("checkpoints/step_15/model.safetensors", "");  // damaged
  Leave("logs/rank1_failure.json", kReport);
  EXPECT_EQ(Text(Write(Outcome(Killed())), "last_checkpoint.step"), "12");
}

// As a single process leaves one.
TEST_F(LaunchFailureTest, RanksThatASecondSignalEnded_LeaveTheReportOfTheLowest) {
  LaunchOutcome stopped;
  stopped.ends = {{1, 101, 0, SIGINT, /*was_asked=*/true}, {2, 102, 7}, {0, 100, 0, SIGINT, /*was_asked=*/true}};
  stopped.exit_code = 128 + SIGINT;
  stopped.user_stopped = true;
  Leave("failure.json", R"({"code": "SIGNAL", "message": "stopped", "rank": 0, "pid": 100, "step": 4})");
  Leave("logs/rank1_failure.json", R"({"code": "SIGNAL", "message": "stopped", "rank": 1, "pid": 101, "step": 4})");
  const ConfigNode report = Write(stopped);
  EXPECT_EQ(Text(report, "rank"), "0");
  EXPECT_EQ(Text(report, "message"), "stopped");
  EXPECT_EQ(Text(report, "restarts"), "0");
  // Where it could leave none, as while it waited for a page of a disk that is gone.
  ASSERT_OK(files_.RemoveFile(absl::StrCat(directory_, "/failure.json")));
  EXPECT_THAT(Text(Write(stopped), "message"), HasSubstr("rank 0 (pid 100) was ended by SIGINT"));
  EXPECT_EQ(Text(Write(stopped), "step"), "4");
}

TEST_F(LaunchFailureTest, RanksThatASecondSignalEnded_LeaveTheReportToRankZerosHost) {
  LaunchOutcome stopped;
  stopped.ends = {{2, 102, 0, SIGINT, /*was_asked=*/true}};
  stopped.exit_code = 128 + SIGINT;
  stopped.user_stopped = true;
  Leave("logs/rank2_failure.json", R"({"code": "SIGNAL", "message": "stopped", "rank": 2, "pid": 102, "step": 4})");
  EXPECT_TRUE(Write(stopped).entries().empty());
}

TEST_F(LaunchFailureTest, WithoutAFailureNothingIsWritten) {
  Leave(".lock", "process 100 on host a\n");
  EXPECT_TRUE(Write(LaunchOutcome()).entries().empty());
  EXPECT_EQ(SavedIn(directory_, files_).steps, 0);
}

TEST_F(LaunchFailureTest, AFineTuningsCheckpointsAreProgress) {
  Leave("checkpoints/step_30/model.safetensors", "");
  const int64_t before = SavedIn(directory_, files_).steps;
  Leave("full_tune/checkpoints/step_5/model.safetensors", "");
  EXPECT_GT(SavedIn(directory_, files_).steps, before);
  EXPECT_EQ(SavedIn(directory_, files_).newest, "step 30, step 5 in full_tune");
  ASSERT_OK(files_.RemoveAll(directory_ + "/checkpoints"));
  EXPECT_EQ(SavedIn(directory_, files_).newest, "step 5 in full_tune");
  ASSERT_OK(files_.RemoveAll(directory_ + "/full_tune"));
  EXPECT_EQ(SavedIn(directory_, files_).newest, "") << "there is none";
}

TEST_F(LaunchFailureTest, TheCheckpointIsThatOfTheTrainingThatFailed) {
  Save("", 30);
  Save("/full_tune", 5);
  for (const auto& [engine, step] : {std::pair("train", "30"), std::pair("full_tune", "5")}) {
    Leave("failure.json", absl::StrCat(R"({"code": "UNAVAILABLE", "rank": 0, "pid": 100, "engine": ")", engine, "\"}"));
    const ConfigNode report = Write(Outcome(Killed()));
    EXPECT_EQ(Text(report, "last_checkpoint.step"), step);
  }
  // All ranks were killed, none of them has left a report.
  Leave(".lock", "process 100 on host a\n");
  WriteLaunchFailure(directory_, "full_tune", 2, Outcome(Killed()), files_);
  ASSERT_OK_AND_ASSIGN(const ConfigNode report, ReadResults(directory_ + "/full_tune_failure.json", files_));
  EXPECT_EQ(Text(report, "last_checkpoint.directory"), directory_ + "/full_tune/checkpoints/step_5");
}

TEST_F(LaunchFailureTest, ARankThatHung_IsNamedWithWhatTheOthersSaid) {
  const std::string host = ProcessIdentity::OfThisProcess().host;
  Leave("failure.json", absl::StrCat(R"({"code": "DEADLINE_EXCEEDED", "message": "no answer from rank 1", "rank": 0,
      "pid": 100, "step": 12, "no_answer_from": "process 1017 on )",
                                     host, ", process 101 on ", host, "\"}"));
  const RankEnd waited{0, 100, 7};
  EXPECT_TRUE(HasWaitedInVain(waited, 101, directory_, "train", files_));
  EXPECT_FALSE(HasWaitedInVain(waited, 17, directory_, "train", files_));
  EXPECT_FALSE(HasWaitedInVain({0, 99, 7}, 101, directory_, "train", files_)) << "another start's report";
  EXPECT_FALSE(HasWaitedInVain({1, 101, 7}, 101, directory_, "train", files_)) << "no report";
  RankEnd hung{1, 101, 0, SIGKILL};
  hung.did_hang = true;
  const ConfigNode report = Write(Outcome(hung));
  EXPECT_EQ(Text(report, "rank"), "1");
  EXPECT_EQ(Text(report, "code"), "DEADLINE_EXCEEDED");
  EXPECT_EQ(Text(report, "exit_code"), "7");
  EXPECT_EQ(Text(report, "signal"), "(none)");
  EXPECT_EQ(Text(report, "step"), "12");
  EXPECT_EQ(Text(report, "message"),
            "rank 1 (pid 101) did not answer the others, and was killed: no answer from rank 1");
}

TEST_F(LaunchFailureTest, RanksThatLostAStoppedOneLeaveNone) {
  Leave("failure.json", R"({"code": "UNAVAILABLE", "rank": 0, "pid": 100})");
  Leave("logs/rank1_failure.json", R"({"code": "DATA_LOSS", "rank": 1, "pid": 99})");
  LaunchOutcome outcome;
  outcome.ends = {{0, 100, 7}, {1, 101, 75}};
  RemoveLaunchFailure(directory_, "train", outcome, files_);
  EXPECT_FALSE(files_.Exists(directory_ + "/failure.json"));
  EXPECT_TRUE(files_.Exists(directory_ + "/logs/rank1_failure.json")) << "of another start";
}

}  // namespace
}  // namespace ssl
