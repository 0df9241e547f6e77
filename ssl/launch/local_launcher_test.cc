// SPDX-License-Identifier: Apache-2.0
//
// Real processes: what they find, what becomes of their output, how often they are started.
#include "ssl/launch/local_launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/launch/pipe.h"
#include "ssl/launch/testing/launch_case.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Those that begin with `prefix`, without it. "": those of rank 0, whose standard output is as it is.
std::vector<std::string> LinesOf(const std::vector<std::string>& lines, const std::string& prefix) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    const bool is_of_another = prefix.empty() && absl::StartsWith(line, "[");
    if (absl::StartsWith(line, prefix) && !is_of_another) found.push_back(line.substr(prefix.size()));
  }
  return found;
}

TEST(LocalLauncherTest, RanksFindTheirPlaces) {
  LaunchCase launch(3, {"*:variable=RANK", "*:variable=WORLD_SIZE", "*:variable=LOCAL_RANK",
                        "*:variable=TORCHELASTIC_RESTART_COUNT"});
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_FALSE(outcome.first_failure.has_value());
  EXPECT_THAT(outcome.ends, SizeIs(3));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(LinesOf(launch.Output(), rank == 0 ? "" : absl::StrCat("[", rank, "] ")),
                ElementsAre(absl::StrCat("RANK=", rank), "WORLD_SIZE=3", absl::StrCat("LOCAL_RANK=", rank),
                            "TORCHELASTIC_RESTART_COUNT=0"));
  }
}

// A restart after a deployment is none of another build.
TEST(LocalLauncherTest, AProgramThatIsReplacedOrRemovedIsStartedAgainAsItWas) {
  for (const std::string successor : {"/bin/false", ""}) {
    LaunchCase launch(2, {"*@0:exit=3", "*@1:print=as it was"});
    const std::string program = MakeTempDir("program") + "/program";
    ASSERT_EQ(symlink(std::filesystem::absolute(launch.options.command[0]).c_str(), program.c_str()), 0);
    launch.options.command[0] = program;
    launch.options.program_fd = open(program.c_str(), O_RDONLY | O_CLOEXEC);
    launch.options.max_restarts = 1;
    launch.options.on_failure = [&](const LaunchOutcome&) {
      EXPECT_EQ(unlink(program.c_str()), 0);
      if (!successor.empty()) {
        EXPECT_EQ(symlink(successor.c_str(), program.c_str()), 0);
      }
    };
    CapturedLog log;
    const absl::StatusOr<LaunchOutcome> outcome = launch.Run();
    close(launch.options.program_fd);
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->exit_code, 0);
    EXPECT_THAT(launch.Output(), UnorderedElementsAre("as it was", "[1] as it was"));
    EXPECT_THAT(log.warnings, Contains(HasSubstr(program + " is not the program any more that was started")));
  }
}

TEST(LocalLauncherTest, ASecondHostsRanksFollowTheFirsts) {
  LaunchCase launch(2, {"*:variable=RANK", "*:variable=MASTER_ADDR", "*:variable=MASTER_PORT"});
  launch.options.first.rank = 2;
  launch.options.first.size = 4;
  launch.options.first.host = "gpu1";
  launch.options.first.port = 40050;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(launch.Output(), UnorderedElementsAre("[2] RANK=2", "[2] MASTER_ADDR=gpu1", "[2] MASTER_PORT=40050",
                                                    "[3] RANK=3", "[3] MASTER_ADDR=gpu1", "[3] MASTER_PORT=40050"));
}

TEST(LocalLauncherTest, AllRanksGetTheSamePort) {
  LaunchCase launch(4, {"*:variable=MASTER_PORT"});
  EXPECT_OK(launch.Run());
  std::set<std::string> ports;
  for (const std::string& line : launch.Output()) ports.insert(line.substr(line.find("MASTER_PORT")));
  EXPECT_THAT(launch.Output(), SizeIs(4));
  EXPECT_THAT(ports, SizeIs(1));
  EXPECT_NE(*ports.begin(), "MASTER_PORT=0");
}

TEST(LocalLauncherTest, OneRankPrintsAsItIs) {
  LaunchCase launch(1, {"*:print=hello", "*:error=oh", "*:read_input=", "*:piece=no end"});
  EXPECT_OK(launch.Run());
  EXPECT_THAT(launch.Output(), ElementsAre("hello", "input ended: 1", "no end"));
  EXPECT_THAT(launch.Errors(), ElementsAre("oh"));
}

TEST(LocalLauncherTest, LinesOfManyStayWholeAndInOrder) {
  constexpr int kLines = 3000;
  LaunchCase launch(4, {absl::StrCat("*:lines=", kLines)});
  EXPECT_OK(launch.Run());
  const std::vector<std::string> output = launch.Output();
  EXPECT_THAT(output, SizeIs(4 * kLines));
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<std::string> lines =
        LinesOf(output, absl::StrCat(rank == 0 ? "" : absl::StrCat("[", rank, "] "), "line "));
    ASSERT_THAT(lines, SizeIs(kLines));
    for (int i = 0; i < kLines; ++i) ASSERT_EQ(lines[i], absl::StrCat(i));
  }
}

TEST(LocalLauncherTest, BothStreamsInOneFileKeepTheirLines) {
  LaunchCase launch(2, {"*:lines=1000", "*:error=oh"});
  launch.options.error_fd = dup(launch.options.output_fd);
  EXPECT_OK(launch.Run());
  const std::vector<std::string> output = launch.Output();
  EXPECT_THAT(output, SizeIs(2 * 1001));
  EXPECT_EQ(std::count(output.begin(), output.end(), "[1] oh"), 1);
}

TEST(LocalLauncherTest, AClosedOutputEndsNoRank) {
  LaunchCase launch(2, {"*:lines=100000"});
  ASSERT_OK_AND_ASSIGN(Pipe pipe, Pipe::Create());
  pipe.CloseRead();
  const int file = launch.options.output_fd;
  launch.options.output_fd = pipe.write_fd();
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  launch.options.output_fd = file;
  EXPECT_EQ(outcome.exit_code, 0);
}

// The reader takes nothing until rank 0, which waits for it, is gone: only a signal that is passed on ends that.
TEST(LocalLauncherTest, AReaderWhoWaitsKeepsNoSignalBack) {
  const std::string fifo = MakeFifo();
  const std::string ready = MakeFifo();
  LaunchCase launch(2, {"0:hold=" + fifo, "0:open=" + ready, "1:opened=" + ready, "0:lines=200000",
                        "1:to_launcher=TERM", "1:pause="});
  ASSERT_OK_AND_ASSIGN(Pipe pipe, Pipe::Create());
  std::thread reader([&] {
    std::vector<char> bytes(1 << 16);
    const int held = open(fifo.c_str(), O_RDONLY | O_CLOEXEC);
    while (read(held, bytes.data(), bytes.size()) > 0) {
    }
    close(held);
    while (read(pipe.read_fd(), bytes.data(), bytes.size()) > 0) {
    }
  });
  const int file = launch.options.output_fd;
  launch.options.output_fd = pipe.write_fd();
  const absl::StatusOr<LaunchOutcome> outcome = launch.Run();
  launch.options.output_fd = file;
  pipe.CloseWrite();
  reader.join();
  ASSERT_OK(outcome);
  EXPECT_TRUE(outcome->user_stopped);
  EXPECT_EQ(outcome->exit_code, 128 + SIGTERM);
}

TEST(LocalLauncherTest, StartsAgainWhileThereIsProgress) {
  LaunchCase launch(2, {"*:variable=TORCHELASTIC_RESTART_COUNT", "1:exit=1"});
  int64_t step = 0;
  launch.options.max_restarts = 3;
  launch.options.progress = [&] {
    step += 5;
    return SavedProgress{step, absl::StrCat("step ", step)};
  };
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.restarts, 3);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(LinesOf(launch.Output(), "[1] TORCHELASTIC_RESTART_COUNT="), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(log.Text(), AllOf(HasSubstr("exited with code 1; the newest checkpoint is of step 10; restart 1 of at"),
                                HasSubstr("step 15; restart 2 of"), HasSubstr("step 20; restart 3 of"),
                                HasSubstr("step 25; no restart after 3, the most")));
}

// Whatever moves: it may be another run's.
TEST(LocalLauncherTest, DoesNotStartAgainInVain) {
  LaunchCase launch(2, {"1:exit=5"});
  int64_t step = 0;
  launch.options.max_restarts = 3;
  launch.options.progress = [&] { return SavedProgress{++step, "step 1"}; };
  launch.options.obstacle = [] { return "another run is here"; };
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.restarts, 0);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(log.Text(), HasSubstr("; no restart: another run is here"));
}

TEST(LocalLauncherTest, StopsAfterThreeTriesWithoutProgress) {
  LaunchCase launch(2, {"0:variable=TORCHELASTIC_RESTART_COUNT", "1:exit=1"});
  launch.options.max_restarts = 10;
  std::vector<int64_t> steps = {0, 5, 5, 5, 5};  // one try moved it
  size_t next = 0;
  launch.options.progress = [&] {
    const int64_t step = steps.at(next++);
    return SavedProgress{step, absl::StrCat("step ", step)};
  };
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.restarts, 3);
  EXPECT_EQ(next, steps.size());
  EXPECT_THAT(log.Text(), HasSubstr("of step 5; no restart after 3 tries that left it there"));
}

TEST(LocalLauncherTest, WithoutACheckpoint_ARestartBeginsAnew) {
  LaunchCase launch(1, {"0:exit=1"});
  launch.options.max_restarts = 10;
  launch.options.progress = [] { return SavedProgress(); };
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.restarts, 2);
  EXPECT_THAT(log.Text(), AllOf(HasSubstr("exited with code 1; there is no checkpoint yet; restart 1 of at most 10, "
                                          "which starts anew"),
                                HasSubstr("there is no checkpoint yet; no restart after 3 tries that saved none")));
}

TEST(LocalLauncherTest, ARestartMayMendIt) {
  LaunchCase launch(2, {"1@0:raise=KILL", "1@1:exit=4"});
  launch.options.max_restarts = 5;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.restarts, 2);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_FALSE(outcome.first_failure.has_value());
}

TEST(LocalLauncherTest, NoRestartMendsAMistake) {
  LaunchCase launch(2, {"1:exit=2"});
  launch.options.max_restarts = 5;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.restarts, 0);
  EXPECT_EQ(outcome.exit_code, 2);
}

TEST(LocalLauncherTest, APortThatIsTakenIsChangedWithoutARestart) {
  const std::string fifo = MakeFifo();
  const std::string first_start = MakeTempDir("start") + "/was";
  LaunchCase launch(2, {"0:variable=MASTER_PORT", absl::StrCat("0:end_if_done=", first_start),
                        absl::StrCat("0:take_port=", fifo), "0:exit=1"});
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.restarts, 0);
  const std::vector<std::string> ports = LinesOf(launch.Output(), "MASTER_PORT=");
  ASSERT_THAT(ports, SizeIs(2));
  EXPECT_NE(ports[0], ports[1]);
  EXPECT_THAT(log.Text(), HasSubstr(absl::StrCat("port ", ports[0], ", which was free, is another process's now")));
  close(open(fifo.c_str(), O_WRONLY));  // the one who took it ends
}

TEST(LocalLauncherTest, RankZeroTakesTheListeningSocketOver) {
  LaunchCase launch(2, {"*:socket=", "1:variable=SSL_LISTENING_SOCKET", "0@0:exit=1", "1@0:pause="});
  launch.options.pass_listening_socket = true;
  launch.options.max_restarts = 1;
  ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(LinesOf(launch.Output(), ""),
              ElementsAre("listens at the master's port", "listens at the master's port"));
  EXPECT_THAT(LinesOf(launch.Output(), "[1] ").back(), "SSL_LISTENING_SOCKET=(none)");
}

TEST(LocalLauncherTest, RanksOfOneHostMeetOnItsLoopbackInterface) {
  LaunchCase launch(2, {"*:variable=MASTER_ADDR"});
  EXPECT_OK(launch.Run());
  EXPECT_THAT(launch.Output(), UnorderedElementsAre("MASTER_ADDR=127.0.0.1", "[1] MASTER_ADDR=127.0.0.1"));
}

TEST(LocalLauncherTest, OneRankGetsNoSocket) {
  LaunchCase launch(1, {"0:socket=", "0:variable=SSL_LISTENING_SOCKET"});
  launch.options.pass_listening_socket = true;
  EXPECT_OK(launch.Run());
  EXPECT_THAT(launch.Output(), ElementsAre("listens nowhere", "SSL_LISTENING_SOCKET=(none)"));
}

TEST(LocalLauncherTest, AProgramThatCannotBeStartedIsNamed) {
  LaunchCase launch(2, {});
  launch.options.command = {"no/such/program"};
  EXPECT_THAT(launch.Run(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such/program")));
  launch.options.command = {"/"};
  EXPECT_THAT(launch.Run(), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("starting /:")));
}

TEST(LocalLauncherTest, OptionsThatContradictEachOtherAreRefused) {
  const auto refuses = [](LaunchOptions options, const char* part) {
    EXPECT_THAT(LaunchLocalRanks(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part)));
  };
  LaunchOptions options;
  refuses(options, "no command");
  options.command = {"/bin/true"};
  options.first.local_size = 2;
  refuses(options, "below the world's size, 1");
  options.first.local_size = 0;
  refuses(options, "0 from rank 0");
  options.first.size = 4;
  options.first.local_size = 2;
  refuses(options, "no port");
  options.first.port = 7;
  options.max_restarts = 1;
  refuses(options, "1 restarts, expected 0");
  options.pass_listening_socket = true;
  refuses(options, "port 7 is given");
  options.output_fd = -1;
  refuses(options, "no open file");
}

}  // namespace
}  // namespace ssl
