// SPDX-License-Identifier: Apache-2.0
//
// Real processes: signals, ranks that fail, and launchers that are killed. A rank that outlives its launcher, or a
// signal that does not arrive, keeps a test waiting for ever.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/launch/local_launcher.h"
#include "ssl/launch/testing/launch_case.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(LocalLauncherStopTest, EachSignalGoesOnOnce) {
  const std::string ready = MakeFifo();
  LaunchCase launch(2, {"*:block=TERM", "*:block=USR2", "1:open=" + ready, "0:opened=" + ready, "0:to_launcher=TERM",
                        "*:await=TERM", "0:to_launcher=USR2", "*:await=USR2", "*:waits=TERM", "*:exit=75"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_TRUE(outcome.user_stopped);
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_THAT(launch.Output(), UnorderedElementsAre("got TERM", "[1] got TERM", "got USR2", "[1] got USR2",
                                                    "TERM does not wait", "[1] TERM does not wait"));
}

TEST(LocalLauncherStopTest, AnEndOfProcessorTimeIsAStop) {
  LaunchCase launch(1, {"0:block=XCPU", "0:to_launcher=XCPU", "0:await=XCPU", "0:exit=75"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_THAT(launch.Output(), ElementsAre("got XCPU"));
  EXPECT_TRUE(outcome.user_stopped);
  EXPECT_EQ(outcome.exit_code, 75);
}

// The kernel repeats SIGXCPU; the user's first stop after it must not be the ranks' second SIGTERM.
TEST(LocalLauncherStopTest, AnEndOfProcessorTimeAfterAFailureIsNoStopOfTheUsers) {
  const std::string ready = MakeFifo();
  LaunchCase launch(
      2, {"0:block=TERM", "0:block=XCPU", "0:block=INT", "0:block=USR1", "0:open=" + ready, "1:opened=" + ready,
          "1:exit=1", "0:await=TERM", "0:to_launcher=XCPU", "0:to_launcher=USR1", "0:await=USR1", "0:to_launcher=INT",
          "0:to_launcher=USR1", "0:await=USR1", "0:waits=XCPU", "0:waits=INT", "0:exit=75"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_THAT(launch.Output(),
              ElementsAre("got TERM", "got USR1", "got USR1", "XCPU does not wait", "INT does not wait"));
  EXPECT_EQ(outcome.exit_code, 1);
}

TEST(LocalLauncherStopTest, ARequestToSaveBeforeItIsHandledEndsNothing) {
  LaunchCase launch(1, {"0:to_launcher=USR1", "0:block=TERM", "0:to_launcher=TERM", "0:await=TERM"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(launch.Output(), ElementsAre("got TERM"));
}

TEST(LocalLauncherStopTest, AStopBeforeItIsHandledWaits) {
  for (const std::string name : {"TERM", "INT", "USR2", "HUP"}) {
    LaunchCase launch(1, {"0:early=", "0:to_launcher=" + name, "0:await=" + name, "0:exit=75"});
    ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
    EXPECT_EQ(outcome.exit_code, 75) << name;
    EXPECT_THAT(launch.Output(), ElementsAre("got " + name));
  }
}

TEST(LocalLauncherStopTest, AStopWhileRanksAreStartedStartsNoFurtherOne) {
  LaunchCase launch(2, {"*:print=came"});
  launch.options.progress = [] {  // asked for when signals are handled, before the first rank
    raise(SIGTERM);
    return SavedProgress();
  };
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_THAT(launch.Output(), SizeIs(0));
  EXPECT_TRUE(outcome.user_stopped);
  EXPECT_EQ(outcome.exit_code, 75);
}

TEST(LocalLauncherStopTest, AStopBeforeTheLauncherHasSignalsStartsNoRank) {
  LaunchCase launch(2, {"*:print=came"});
  launch.options.is_stopped_before = [] { return true; };
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_THAT(launch.Output(), SizeIs(0));
  EXPECT_TRUE(outcome.user_stopped);
  EXPECT_EQ(outcome.exit_code, 75);
}

TEST(LocalLauncherStopTest, AStopWhenTheLastRankHasEndedIsTheUsers) {
  LaunchCase launch(1, {"0:exit=3"});
  launch.options.on_failure = [](const LaunchOutcome&) { raise(SIGINT); };
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_TRUE(outcome.user_stopped);
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST(LocalLauncherStopTest, ARankThatIsStoppedByItselfIsNoFailureOfThoseThatLoseIt) {
  const std::string held = MakeFifo();
  LaunchCase launch(2, {"1:hold=" + held, "1:exit=75", "0:until_closed=" + held, "0:exit=7"});
  launch.options.max_restarts = 3;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_EQ(outcome.restarts, 0);
}

// The launcher's own SIGTERM, after the rank that lost the other was seen to end, comes too late for it.
TEST(LocalLauncherStopTest, ARankThatIsStoppedByItselfMayBeSeenLast) {
  const std::string ready = MakeFifo();
  LaunchCase launch(2, {"1:open=" + ready, "1:exit=75", "0:exit=7"});
  launch.options.waited_in_vain = [&](const RankEnd& end, int64_t pid) {  // asked before the launcher sends anything
    if (end.rank != 0) return false;
    close(open(ready.c_str(), O_RDONLY | O_CLOEXEC));
    siginfo_t info = {};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    return false;
  };
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.exit_code, 75);
}

TEST(LocalLauncherStopTest, ARankThatIsStoppedByItselfStopsThoseThatWaitForIt) {
  LaunchCase launch(2, {"1:exit=75", "0:early=", "0:await=TERM", "0:exit=75"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_FALSE(outcome.user_stopped);
  EXPECT_EQ(outcome.exit_code, 75);
}

TEST(LocalLauncherStopTest, ARankThatEndsByTheStopOfAnotherIsStopped) {
  LaunchCase launch(2, {"1:exit=75", "0:pause="});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.exit_code, 75);
}

TEST(LocalLauncherStopTest, OfRanksThatFailAlikeTheLowestIsTheFirst) {
  const std::string held = MakeFifo();
  LaunchCase launch(2, {"1:hold=" + held, "0:block=TERM", "1:exit=2", "0:until_closed=" + held, "0:exit=2"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  ASSERT_TRUE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.first_failure->rank, 0);
  EXPECT_EQ(outcome.exit_code, 2);
}

TEST(LocalLauncherStopTest, EachFailureIsToldBeforeTheNextStart) {
  LaunchCase launch(1, {"0@0:exit=3", "0@1:exit=4", "0@2:exit=0"});
  launch.options.max_restarts = 3;
  std::vector<int> codes;
  launch.options.on_failure = [&](const LaunchOutcome& outcome) { codes.push_back(outcome.exit_code); };
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(codes, ElementsAre(3, 4));
}

TEST(LocalLauncherStopTest, ARequestToSaveIsNoStop) {
  LaunchCase launch(1, {"0:block=USR1", "0:to_launcher=USR1", "0:await=USR1"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.user_stopped);
  EXPECT_THAT(launch.Output(), ElementsAre("got USR1"));
}

TEST(LocalLauncherStopTest, ARankThatAStoppedOneLeftIsNoFailure) {
  const std::string ready = MakeFifo();
  LaunchCase launch(2, {"*:block=TERM", "1:open=" + ready, "0:opened=" + ready, "0:to_launcher=TERM", "*:await=TERM",
                        "0:exit=75", "1:exit=7"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.exit_code, 75);
}

TEST(LocalLauncherStopTest, RanksThatDoNotHandleAStopAreNoFailures) {
  LaunchCase launch(2, {"0:to_launcher=HUP", "*:pause="});
  launch.options.max_restarts = 3;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.exit_code, 128 + SIGHUP);
  EXPECT_EQ(outcome.restarts, 0);
}

TEST(LocalLauncherStopTest, TheFirstFailureIsNamedAndStopsTheOthers) {
  const std::string ready = MakeFifo();
  LaunchCase launch(3, {"0:block=TERM", "0:open=" + ready, "2:opened=" + ready, "2:pid=", "2:raise=KILL",
                        "0:await=TERM", "0:print=saved", "0:exit=75", "1:pause="});
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  ASSERT_TRUE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.first_failure->rank, 2);
  EXPECT_EQ(outcome.first_failure->signal, SIGKILL);
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
  EXPECT_THAT(launch.Output(), Contains(absl::StrCat("[2] ", outcome.first_failure->pid)));
  EXPECT_THAT(launch.Output(), Contains("saved"));
  EXPECT_THAT(outcome.ends, SizeIs(3));
  EXPECT_EQ(DescribeEnd(*outcome.first_failure),
            absl::StrCat("rank 2 (pid ", outcome.first_failure->pid, ") was ended by SIGKILL"));
  EXPECT_THAT(log.Text(), HasSubstr("was ended by SIGKILL; stopping the others"));
}

TEST(LocalLauncherStopTest, ARankThatDoesNotStopIsKilledAfterTheGrace) {
  const std::string ready = MakeFifo();
  LaunchCase launch(2, {"0:block=TERM", "0:open=" + ready, "1:opened=" + ready, "1:exit=3", "*:pause="});
  launch.options.grace = absl::Milliseconds(20);
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.first_failure->rank, 1);
  ASSERT_THAT(outcome.ends, SizeIs(2));
  EXPECT_EQ(outcome.ends[1].signal, SIGKILL);
  EXPECT_TRUE(outcome.ends[1].was_asked);
}

// LaunchCase gives an endless grace.
TEST(LocalLauncherStopTest, ARankThatHangsIsKilledAndIsTheFailure) {
  const std::string ready = MakeFifo();
  LaunchCase launch(2, {"1:block=TERM", "1:open=" + ready, "0:opened=" + ready, "0:exit=7", "1:pause="});
  int64_t hangs = 0;
  launch.options.waited_in_vain = [&](const RankEnd& end, int64_t pid) {
    hangs = pid;
    return end.rank == 0;
  };
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  ASSERT_TRUE(outcome.first_failure.has_value());
  EXPECT_TRUE(outcome.first_failure->did_hang);
  EXPECT_EQ(outcome.first_failure->rank, 1);
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(DescribeEnd(*outcome.first_failure),
            absl::StrCat("rank 1 (pid ", hangs, ") did not answer the others, and was killed"));
  EXPECT_THAT(log.Text(), HasSubstr(absl::StrCat("rank 1 (pid ", hangs, ") does not answer rank 0: killing it")));
}

TEST(LocalLauncherStopTest, ARankThatBlamesAnotherIsNotTheFirst) {
  const std::string ready = MakeFifo();
  LaunchCase launch(
      2, {"1:block=TERM", "1:open=" + ready, "0:opened=" + ready, "0:exit=7", "1:await=TERM", "1:raise=KILL"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  ASSERT_TRUE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.first_failure->rank, 1);
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
}

TEST(LocalLauncherStopTest, ARankThatBlamesAnotherIsTheFirstWhenNoneElseFails) {
  LaunchCase launch(2, {"0:exit=7", "1:pause="});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  ASSERT_TRUE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.first_failure->rank, 0);
  EXPECT_EQ(outcome.exit_code, 7);
}

// Rank 0 has the launcher's SIGTERM when the user stops for the first time.
TEST(LocalLauncherStopTest, AUsersFirstStopAfterAFailureIsNotTheRanksSecond) {
  const std::string ready = MakeFifo();
  LaunchCase launch(2, {"0:block=TERM", "0:block=INT", "0:block=USR1", "0:open=" + ready, "1:opened=" + ready,
                        "1:exit=1", "0:await=TERM", "0:to_launcher=INT", "0:to_launcher=USR1", "0:await=USR1",
                        "0:waits=INT", "0:to_launcher=INT", "0:await=INT", "0:exit=75"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_THAT(launch.Output(), ElementsAre("got TERM", "got USR1", "INT does not wait", "got INT"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(outcome.user_stopped);
}

TEST(LocalLauncherStopTest, AFailureAfterAUsersStopSendsNoSecond) {
  const std::string ready = MakeFifo();
  const std::string held = MakeFifo();
  LaunchCase launch(2, {"*:block=TERM", "0:block=USR1", "1:open=" + ready, "0:opened=" + ready, "0:to_launcher=TERM",
                        "*:await=TERM", "1:hold=" + held, "1:exit=1", "0:until_closed=" + held, "0:to_launcher=USR1",
                        "0:await=USR1", "0:waits=TERM", "0:exit=75"});
  launch.options.max_restarts = 3;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_THAT(launch.Output(), Contains("TERM does not wait"));
  EXPECT_EQ(outcome.first_failure->rank, 1);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.restarts, 0);
}

TEST(LocalLauncherStopTest, SomeFinishedAndSomeStoppedIsStopped) {
  LaunchCase launch(2, {"0:exit=75"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_EQ(outcome.exit_code, 75);
}

TEST(LocalLauncherStopTest, WhatARankLeavesBehindEndsWithIt) {
  const std::string held = MakeFifo();
  const int reader = open(held.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  LaunchCase launch(1, {"0:leave_child=" + held, "0:print=leaving"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 0);
  fcntl(reader, F_SETFL, 0);
  char bytes[8];
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 1);  // the one byte of the holder
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 0);  // no holder is left
  close(reader);
}

TEST(LocalLauncherStopTest, NoRankOutlivesALauncherThatIsKilled) {
  const std::string held = MakeFifo();
  const pid_t launcher = fork();
  if (launcher == 0) {
    LaunchCase launch(3, {"*:block=TERM", "*:block=HUP", "*:hold=" + held, "*:pause="});
    _exit(launch.Run().ok() ? 0 : 1);
  }
  const int reader = open(held.c_str(), O_RDONLY | O_CLOEXEC);
  char byte = 0;
  for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(read(reader, &byte, 1), 1);
  kill(launcher, SIGKILL);
  EXPECT_EQ(read(reader, &byte, 1), 0);  // all three have ended: they hold it open until then
  int status = 0;
  EXPECT_EQ(waitpid(launcher, &status, 0), launcher);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  close(reader);
}

TEST(LocalLauncherStopTest, HandlersAreAsBeforeAfterwards) {
  struct sigaction before = {};
  before.sa_handler = SIG_IGN;
  sigaction(SIGUSR2, &before, nullptr);
  LaunchCase launch(1, {});
  EXPECT_OK(launch.Run());
  struct sigaction after = {};
  sigaction(SIGUSR2, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace ssl
