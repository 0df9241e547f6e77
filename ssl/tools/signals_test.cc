// SPDX-License-Identifier: Apache-2.0
//
// Each signal in a process of its own; whole runs are in tests/integration.
#include "ssl/tools/signals.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/run_progress.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/tools/crash_report.h"
#include "ssl/tools/report_file.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;
using ::testing::Not;

constexpr int kWentOn = 17;

// Raises the signals and leaves with kWentOn when the process survives them and a stop was requested.
[[noreturn]] void RaiseIn(const char* phase, std::initializer_list<int> signals) {
  StopToken stop;
  RunProgress progress;
  progress.phase = phase;
  const ReportFile none;
  const CrashReportScope scope(none, "\"a\": 1", "checkpoints", progress);
  PrepareProcess();
  StopOnSignals(&stop, /*has_peers=*/false);
  for (const int number : signals) std::raise(number);
  _exit(stop.requested() ? kWentOn : EXIT_FAILURE);
}

TEST(SignalsDeathTest, BeforeTheRun_StopSignalsEndTheProcessAsStopped) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR2, SIGHUP}) {
    EXPECT_EXIT(
        {
          PrepareProcess();
          std::raise(number);
        },
        ExitedWithCode(75), "stopped before the first step");
  }
}

TEST(SignalsDeathTest, WhileTheRunIsBuilt_StopSignalsEndItToo) {
  EXPECT_EXIT(RaiseIn("building", {SIGTERM}), ExitedWithCode(75), "stopped before the first step");
}

// The others wait for this rank in an operation: they hear of the stop before the first step.
TEST(SignalsDeathTest, WhileARunOfSeveralRanksIsBuilt_TheFirstRequestsAStop_TheSecondEndsIt) {
  const auto raise = [](int times) {
    StopToken stop;
    const RunProgress progress;
    const ReportFile none;
    const CrashReportScope scope(none, "\"a\": 1", "checkpoints", progress);
    PrepareProcess();
    StopOnSignals(&stop, /*has_peers=*/true);
    for (int i = 0; i < times; ++i) std::raise(SIGTERM);
    _exit(stop.requested() ? kWentOn : EXIT_FAILURE);
  };
  EXPECT_EXIT(raise(1), ExitedWithCode(kWentOn), "");
  EXPECT_EXIT(raise(2), ExitedWithCode(75), "stopped before the first step");
}

TEST(SignalsDeathTest, AfterAFailure_AStopKeepsItsCode) {
  const auto raise = [](int times) {
    PrepareProcess();
    KeepExitCode(5);
    for (int i = 0; i < times; ++i) std::raise(SIGTERM);
    _exit(kWentOn);
  };
  EXPECT_EXIT(raise(1), ExitedWithCode(kWentOn), "^$");
  EXPECT_EXIT(raise(2), ExitedWithCode(5), "^$");
}

TEST(SignalsDeathTest, AfterARunThatStopped_AStopIsHeardBySweepAndNextRun) {
  const auto raise = [](bool begins_another) {
    StopToken stop;
    RunProgress progress;
    progress.phase = "training";
    const ReportFile none;
    const CrashReportScope scope(none, "\"a\": 1", "checkpoints", progress);
    PrepareProcess();
    StopOnSignals(&stop, /*has_peers=*/false);
    KeepExitCode(75);
    if (begins_another) StopOnSignals(&stop, /*has_peers=*/false);
    std::raise(SIGTERM);
    if (!stop.requested()) _exit(EXIT_FAILURE);
    std::raise(SIGTERM);
    _exit(kWentOn);
  };
  EXPECT_EXIT(raise(false), ExitedWithCode(75), "^$");
  EXPECT_EXIT(raise(true), KilledBySignal(SIGTERM), "");
}

TEST(SignalsDeathTest, AStopThatCameBeforeThereWasAHandler_IsAStop) {
  EXPECT_EXIT(
      {
        sigset_t term;
        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        sigprocmask(SIG_BLOCK, &term, nullptr);
        std::raise(SIGTERM);
        PrepareProcess();
        _exit(kWentOn);
      },
      ExitedWithCode(75), "stopped before the first step");
}

TEST(SignalsDeathTest, InARun_TheFirstRequestsAStop_TheSecondKills) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR2, SIGHUP}) {
    EXPECT_EXIT(RaiseIn("training", {number}), ExitedWithCode(kWentOn), "");
    EXPECT_EXIT(RaiseIn("training", {number, SIGTERM}), KilledBySignal(SIGTERM), "");
  }
}

TEST(SignalsDeathTest, Usr1_AsksForASnapshotAndNeverEndsAnything) {
  for (const char* phase : {"building", "training", "evaluating"}) {
    EXPECT_EXIT(
        {
          StopToken stop;
          RunProgress progress;
          progress.phase = phase;
          const ReportFile none;
          const CrashReportScope scope(none, "\"a\": 1", "checkpoints", progress);
          PrepareProcess();
          std::raise(SIGUSR1);
          StopOnSignals(&stop, /*has_peers=*/false);
          std::raise(SIGUSR1);
          std::raise(SIGUSR1);
          _exit(stop.snapshot_requests() == 2 && !stop.requested() ? kWentOn : EXIT_FAILURE);
        },
        ExitedWithCode(kWentOn), "")
        << phase;
  }
  EXPECT_EXIT(RaiseIn("training", {SIGTERM, SIGUSR1}), ExitedWithCode(kWentOn), "") << "no second stop signal";
  EXPECT_EXIT(RaiseIn("training", {SIGUSR1, SIGTERM, SIGTERM}), KilledBySignal(SIGTERM), "");
}

// The kernel sends it every second once the limit is reached.
TEST(SignalsDeathTest, LimitOfProcessorTime_RequestsAStopHoweverOften) {
  EXPECT_EXIT(RaiseIn("building", {SIGXCPU}), ExitedWithCode(75), "stopped before the first step");
  EXPECT_EXIT(RaiseIn("training", {SIGXCPU, SIGXCPU, SIGTERM, SIGXCPU}), ExitedWithCode(kWentOn), "");
  EXPECT_EXIT(RaiseIn("training", {SIGXCPU, SIGTERM, SIGTERM}), KilledBySignal(SIGTERM), "");
}

TEST(SignalsDeathTest, SignalsThatEndTheRun_LeaveAReport) {
  const std::string path = absl::StrCat(MakeTempDir("signals"), "/failure.json");
  for (const int number : {SIGQUIT, SIGALRM}) {
    EXPECT_EXIT(
        {
          PrepareProcess();
          const ReportFile report(path);
          const RunProgress progress;
          const CrashReportScope scope(report, "\"a\": 1", "checkpoints", progress);
          std::raise(number);
        },
        KilledBySignal(number), "");
    const absl::StatusOr<std::string> report = PosixFileSystem().Read(path);
    EXPECT_THAT(report.value_or("(none)"), HasSubstr(absl::StrCat("\"signal\": ", number)));
  }
}

// Of a library's initialiser or thread, say.
TEST(SignalsDeathTest, ExhaustedMemoryThatNobodyCaught_EndsTheProcessWithItsCode) {
  const std::string path = absl::StrCat(MakeTempDir("signals"), "/failure.json");
  const auto end_by = [&path](auto exception) {
    HoldSignals();  // as the program does before its libraries' initialisers
    const ReportFile report(path);
    const RunProgress progress;
    const CrashReportScope scope(report, "\"a\": 1", "checkpoints", progress);
    const std::function<void()> work = [&] { throw exception; };
    [&]() noexcept { work(); }();
  };
  EXPECT_EXIT(end_by(std::bad_alloc()), ExitedWithCode(6), "out of memory: raise the limit of this process");
  const std::string report = PosixFileSystem().Read(path).value_or("(none)");
  EXPECT_THAT(report, AllOf(HasSubstr("\"code\": \"RESOURCE_EXHAUSTED\""), HasSubstr("\"exit_code\": 6,"),
                            Not(HasSubstr("signal"))));
  const auto no_thread = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EXIT(end_by(std::system_error(no_thread)), ExitedWithCode(6), "ulimit -u");
  EXPECT_EXIT(end_by(std::runtime_error("torn")), KilledBySignal(SIGABRT), "");
}

TEST(SignalsDeathTest, StopOfAnotherRank_MakesNoFirstSignalASecondOne) {
  EXPECT_EXIT(
      {
        StopToken stop;
        stop.Request(kStopTerminate);
        PrepareProcess();
        StopOnSignals(&stop, /*has_peers=*/false);
        std::raise(SIGTERM);
        _exit(kWentOn);
      },
      ExitedWithCode(kWentOn), "");
}

TEST(SignalsDeathTest, BrokenPipesAndFileSizeLimits_AreErrorsOfTheWrite) {
  EXPECT_EXIT(
      {
        PrepareProcess();
        std::raise(SIGPIPE);
        std::raise(SIGXFSZ);
        _exit(kWentOn);
      },
      ExitedWithCode(kWentOn), "");
}

TEST(SignalsDeathTest, ClosedStandardDescriptors_LeadNowhere) {
  EXPECT_EXIT(
      {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        PrepareProcess();
        const int next = dup(STDERR_FILENO);
        _exit(next > STDERR_FILENO ? kWentOn : EXIT_FAILURE);
      },
      ExitedWithCode(kWentOn), "");
}

}  // namespace
}  // namespace ssl
