// SPDX-License-Identifier: Apache-2.0
//
// Signals to this process, as the pipe tells of them.
#include "ssl/launch/signal_pipe.h"

#include <csignal>

#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SignalPipeTest, TellsThemInTheirOrderAndOnce) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SignalPipe> signals, SignalPipe::Install());
  for (const int number : {SIGUSR2, SIGTERM, SIGTERM, SIGPIPE, SIGXCPU, SIGHUP}) raise(number);
  EXPECT_THAT(signals->Take(), ElementsAre(SIGUSR2, SIGTERM, SIGTERM, SIGXCPU, SIGHUP));
  EXPECT_THAT(signals->Take(), IsEmpty());
}

TEST(SignalPipeTest, AnIgnoredHangupStaysIgnored) {
  signal(SIGHUP, SIG_IGN);
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SignalPipe> signals, SignalPipe::Install());
    raise(SIGHUP);
    EXPECT_THAT(signals->Take(), IsEmpty());
  }
  EXPECT_EQ(signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(SignalPipeTest, WhatCameBeforeItIsPutBackIsTold) {
  signal(SIGTERM, SIG_IGN);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SignalPipe> signals, SignalPipe::Install());
  raise(SIGTERM);
  signals->PutBack();
  raise(SIGTERM);
  EXPECT_THAT(signals->Take(), ElementsAre(SIGTERM));
  EXPECT_EQ(signal(SIGTERM, SIG_DFL), SIG_IGN);
}

TEST(SignalPipeTest, ThereIsOneAtATime) {
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SignalPipe> signals, SignalPipe::Install());
    EXPECT_THAT(SignalPipe::Install(), StatusIs(absl::StatusCode::kFailedPrecondition));
    raise(SIGTERM);
    EXPECT_THAT(signals->Take(), ElementsAre(SIGTERM));
  }
  EXPECT_OK(SignalPipe::Install());
}

}  // namespace
}  // namespace ssl
