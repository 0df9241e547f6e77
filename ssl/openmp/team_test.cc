// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <exception>
#include <vector>

#include "ssl/openmp/region.h"

namespace ssl {
namespace {

using ::testing::Each;

// Threads that ran the shares of a region, by the share's number.
struct Runners {
  std::array<pthread_t, 2> threads = {};
  bool meets = false;  // both shares run at a time

  static void Run(void* data) {
    auto* const runners = static_cast<Runners*>(data);
    runners->threads[Region::CurrentShare()] = pthread_self();
    if (runners->meets) Region::Current()->Barrier();
  }
};

std::atomic<bool> is_held{false};
std::atomic<bool> holds{false};

// As a thread is that the system does not schedule.
void Hold(int /*signal*/) {
  is_held.store(true);
  while (holds.load()) sched_yield();
}

TEST(TeamTest, TheCallerTakesOverTheShareOfAThreadThatIsNotScheduled) {
  Team team;
  Runners runners;
  runners.meets = true;
  team.Run(&Runners::Run, &runners, 2);
  const pthread_t worker = runners.threads[1];
  ASSERT_FALSE(pthread_equal(worker, pthread_self()));

  std::signal(SIGUSR1, &Hold);
  holds.store(true);
  ASSERT_EQ(pthread_kill(worker, SIGUSR1), 0);
  while (!is_held.load()) sched_yield();
  runners.meets = false;
  for (int i = 0; i < 10; ++i) {
    runners.threads = {};
    team.Run(&Runners::Run, &runners, 2);
    for (const pthread_t thread : runners.threads) EXPECT_TRUE(pthread_equal(thread, pthread_self()));
  }
  holds.store(false);
  runners.meets = true;
  team.Run(&Runners::Run, &runners, 2);
  EXPECT_TRUE(pthread_equal(runners.threads[1], worker) || pthread_equal(runners.threads[0], worker));
}

// OpenMP's code of LibTorch waits so, on memory of its own.
TEST(TeamTest, SharesMayWaitForOneAnother) {
  struct Meeting {
    std::atomic<uint32_t> arrived{0};
    static void Run(void* data) {
      auto* const meeting = static_cast<Meeting*>(data);
      ++meeting->arrived;
      while (meeting->arrived.load() < Region::Current()->shares()) sched_yield();
    }
  };
  Team team;
  for (const uint32_t shares : {2u, 5u, 3u, 5u}) {
    Meeting meeting;
    team.Run(&Meeting::Run, &meeting, shares);
    EXPECT_EQ(meeting.arrived.load(), shares);
  }
}

TEST(TeamTest, AllSharesHaveEndedWhenARegionReturns) {
  struct Counts {
    std::vector<int> runs;
    static void Run(void* data) { ++static_cast<Counts*>(data)->runs[Region::CurrentShare()]; }
  };
  Team team;
  Counts counts;
  for (int i = 1; i <= 1000; ++i) {
    counts.runs.resize(4);
    team.Run(&Counts::Run, &counts, 4);
    ASSERT_THAT(counts.runs, Each(i));
  }
}

// More threads than the standard library keeps stacks of from before.
constexpr uint32_t kManyShares = 64;

TEST(TeamTest, AThreadThatCannotBeStartedIsAnExceptionAheadOfTheRegion) {
  std::atomic<uint32_t> runs{0};
  const auto run = [](void* data) { ++*static_cast<std::atomic<uint32_t>*>(data); };
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;  // no memory for a stack
  Team team;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
  bool is_told = false;
  try {
    team.Run(run, &runs, kManyShares);
  } catch (const std::exception&) {  // of the thread, or of its memory
    is_told = true;
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(is_told);
  EXPECT_EQ(runs.load(), 0u);
  team.Run(run, &runs, kManyShares);
  EXPECT_EQ(runs.load(), kManyShares);
}

}  // namespace
}  // namespace ssl
