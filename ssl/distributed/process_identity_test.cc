// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/process_identity.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::StartsWith;

ProcessIdentity OfChild(pid_t child) {
  ProcessIdentity identity = ProcessIdentity::OfThisProcess();
  identity.pid = child;
  return identity;
}

TEST(ProcessIdentityTest, TextKeepsAll) {
  const ProcessIdentity own = ProcessIdentity::OfThisProcess();
  const ProcessIdentity read = ProcessIdentity::FromText(own.ToText());
  EXPECT_EQ(read.pid, getpid());
  EXPECT_EQ(read.scope, own.scope);
  EXPECT_EQ(read.host, own.host);
  EXPECT_THAT(read.Name(), StartsWith(absl::StrCat("process ", getpid(), " on ")));
  EXPECT_FALSE(own.HasEnded());
  EXPECT_FALSE(own.IsStopped());
  EXPECT_TRUE(own.IsRunning());
}

TEST(ProcessIdentityTest, StoppedChild_IsStoppedAndHasNotEnded) {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  kill(child, SIGSTOP);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, child, &info, WSTOPPED), 0);
  EXPECT_TRUE(OfChild(child).IsStopped());
  EXPECT_TRUE(OfChild(child).IsRunning());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(OfChild(child).IsStopped());
  EXPECT_FALSE(OfChild(child).IsRunning());
}

TEST(ProcessIdentityTest, ChildHasEnded_BeforeAndAfterItIsWaitedFor) {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  EXPECT_FALSE(OfChild(child).HasEnded());
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);  // still a zombie
  EXPECT_TRUE(OfChild(child).HasEnded());
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(OfChild(child).HasEnded());
}

TEST(ProcessIdentityTest, ProcessOfAnotherMachine_IsNotSaidToHaveEnded) {
  ProcessIdentity elsewhere = ProcessIdentity::OfThisProcess();
  elsewhere.pid = 999999999;
  EXPECT_TRUE(elsewhere.HasEnded());
  elsewhere.scope += "x";
  EXPECT_FALSE(elsewhere.HasEnded());
  EXPECT_FALSE(elsewhere.IsRunning());
  EXPECT_FALSE(ProcessIdentity::FromText("not a process").HasEnded());
  EXPECT_FALSE(ProcessIdentity().HasEnded());
}

}  // namespace
}  // namespace ssl
