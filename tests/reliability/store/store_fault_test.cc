// SPDX-License-Identifier: Apache-2.0
//
// F2 and F3: a process that ends before any file call of a resume and save, in the middle of any write, and any such
// call that fails, with every errno, once or from then on. Reads are calls, too.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "tests/reliability/store/store_run.h"

namespace ssl {
namespace {

using ::testing::AnyOf;
using Repeat = FaultFileSystem::Repeat;

constexpr int kExited = 99;

class StoreFaultTest : public ::testing::TestWithParam<bool> {
 protected:
  // A directory with checkpoints of iterations 5 and 10.
  void Prepare() {
    ASSERT_OK(PosixFileSystem().RemoveAll(directory_));
    for (const int64_t iteration : {5, 10}) ASSERT_OK(StoreRun(directory_, PosixFileSystem()).GoTo(iteration));
  }
  // Whatever happened, the next process finds a whole checkpoint, and can go on from it.
  int64_t Recover() {
    StoreRun run(directory_, PosixFileSystem());
    EXPECT_OK(run.Look());
    EXPECT_TRUE(run.IsWhole());
    const int64_t found = run.iteration();
    EXPECT_OK(StoreRun(directory_, PosixFileSystem()).GoTo(20));
    StoreRun later(directory_, PosixFileSystem());
    EXPECT_OK(later.Look());
    EXPECT_EQ(later.iteration(), 20);
    EXPECT_TRUE(later.IsWhole());
    return found;
  }

  const HarnessDirectory harness_;
  const std::string directory_ = harness_.path() + "/run";
};

TEST_P(StoreFaultTest, ProcessEndsAtAnyCall) {
  int cases = 0;
  for (const bool in_the_middle_of_writes : {false, true}) {
    bool ended = true;
    for (int call = 1; ended; ++call, ++cases) {
      Prepare();
      const pid_t child = fork();
      if (child == 0) {
        FaultFileSystem faulty(PosixFileSystem(), directory_);
        faulty.set_fault_reads(true);
        faulty.set_short_writes(in_the_middle_of_writes);
        faulty.ExitAtCall(call, kExited);
        _exit(StoreRun(directory_, faulty, 64, GetParam()).GoTo(15).ok() ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status)) << "call " << call;
      ASSERT_THAT(WEXITSTATUS(status), AnyOf(0, kExited)) << "call " << call;
      ended = WEXITSTATUS(status) == kExited;
      ASSERT_THAT(Recover(), AnyOf(10, 15)) << "call " << call;
    }
  }
  EXPECT_GT(cases, 80);
  std::cout << "F2: " << cases << " process ends, each recovered\n";
}

TEST_P(StoreFaultTest, AnyCallFails) {
  int cases = 0;
  for (const int error : {ENOSPC, EIO, EDQUOT, EINTR, EACCES}) {
    for (const Repeat repeat : {Repeat::kOnce, Repeat::kFromThenOn}) {
      bool failed = true;
      for (int call = 1; failed; ++call, ++cases) {
        Prepare();
        FaultFileSystem faulty(PosixFileSystem(), directory_);
        faulty.set_fault_reads(true);
        faulty.set_short_writes(call % 2 == 0);
        faulty.FailCall(call, error, repeat);
        const absl::Status status = StoreRun(directory_, faulty, 64, GetParam()).GoTo(15);
        failed = faulty.failed_calls() > 0;
        const std::string where = absl::StrCat("errno ", error, " at call ", call, ": ", status.ToString());
        const int64_t found = Recover();
        ASSERT_TRUE(found == 15 || (!status.ok() && found == 10)) << where;
      }
    }
  }
  EXPECT_GT(cases, 500);
  std::cout << "F3: " << cases << " failing calls, each recovered\n";
}

INSTANTIATE_TEST_SUITE_P(InBackground, StoreFaultTest, ::testing::Bool());

}  // namespace
}  // namespace ssl
