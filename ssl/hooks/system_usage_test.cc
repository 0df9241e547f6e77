// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/system_usage.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

constexpr char kMeminfo[] =
    "MemTotal:       16777216 kB\n"
    "MemFree:         1048576 kB\n"
    "MemAvailable:    4194304 kB\n"
    "Cached:          3000000 kB\n"
    "SwapTotal:       8388608 kB\n"
    "SwapFree:        6291456 kB\n"
    "HugePages_Total:       0\n";

TEST(SystemUsage, Memory_IsWhatProgramsCannotHave) {
  const MemoryUsage usage = ParseMemoryUsage(kMeminfo);
  EXPECT_DOUBLE_EQ(usage.used_gb, 12.0);
  EXPECT_DOUBLE_EQ(usage.used_percent, 75.0);
  EXPECT_DOUBLE_EQ(usage.swap_percent, 25.0);
}

TEST(SystemUsage, MachineWithoutSwap_UsesNone) {
  EXPECT_EQ(ParseMemoryUsage("MemTotal: 100 kB\nMemAvailable: 40 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n").swap_percent,
            0.0);
  EXPECT_EQ(ParseMemoryUsage("").used_percent, 0.0);
}

TEST(SystemUsage, Cores_AreBusyUnlessTheyWait) {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const CpuTimes earlier = ParseCpuTimes("cpu  100 10 20 800 50 5 5 10 40 2\ncpu0 1 2 3\n");
  EXPECT_EQ(earlier.total, 1000);
  EXPECT_EQ(earlier.busy, 150);
  const CpuTimes later = ParseCpuTimes("cpu  160 20 25 820 55 5 5 10 40 2\ncpu0 1 2 3\n");
  EXPECT_DOUBLE_EQ(BusyPercent(earlier, later), 75.0);
  EXPECT_EQ(BusyPercent(later, later), 0.0);
  EXPECT_EQ(ParseCpuTimes("intr 5").total, 0);
  EXPECT_EQ(ParseCpuTimes("cpu 1 x 3").total, 0);
}

TEST(SystemUsage, Threads_AreThoseOfTheStatus) {
  EXPECT_EQ(ParseThreads("Name:\ttrainer\nThreads:\t17\nSigQ: 0/100\n"), 17);
  EXPECT_EQ(ParseThreads(""), 0);
}

TEST(SystemUsage, ThisMachine_Tells) {
  const MemoryUsage memory = ParseMemoryUsage(ReadProcFile("/proc/meminfo"));
  EXPECT_GT(memory.used_gb, 0.0);
  EXPECT_LT(memory.used_percent, 100.0);
  EXPECT_GT(ParseCpuTimes(ReadProcFile("/proc/stat")).total, 0);
  EXPECT_GE(ParseThreads(ReadProcFile("/proc/self/status")), 1);
  EXPECT_GT(FreeDiskBytes(MakeTempDir("disk")).value_or(0), 0);
  EXPECT_EQ(FreeDiskBytes("/no/such/folder"), std::nullopt);
  EXPECT_EQ(ReadProcFile("/proc/no_such_file"), "");
}

}  // namespace
}  // namespace ssl
