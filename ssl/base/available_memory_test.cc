// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/available_memory.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace ssl {
namespace {

constexpr char kMeminfo[] = "MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\n";
constexpr int64_t kAvailable = int64_t{20000000} << 10;

TEST(AvailableMemory, IsTheKernelsNumberWhereNoGroupHasALimit) {
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "", "", ""), kAvailable);
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "max\n", "123\n", ""), kAvailable);
}

TEST(AvailableMemory, IsWhatAGroupHasLeftWhereThatIsLess) {
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "5000\n", "2000\n", ""), 3000);
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "5000\n", "7000\n", ""), 0);
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "99000000000000\n", "7000\n", ""), kAvailable);
}

TEST(AvailableMemory, PagesOfFilesThatAGroupHasReadAreFree) {
  constexpr char kStat[] =
      "anon 1000\nfile 3500\ninactive_anon 900\nactive_anon 100\ninactive_file 2000\nactive_file 500\n";
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "5000\n", "4500\n", kStat), 3000);
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "5000\n", "2000\n", kStat), 5000) << "not above the limit";
  EXPECT_EQ(ParseAvailableMemory(kMeminfo, "max\n", "4500\n", kStat), kAvailable);
}

TEST(AvailableMemory, IsUnlimitedWhereNothingIsTold) {
  EXPECT_EQ(ParseAvailableMemory("", "", "", ""), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseAvailableMemory("MemAvailable: many kB\n", "", "", ""), std::numeric_limits<int64_t>::max());
}

TEST(AvailableMemory, OfThisMachineIsSomething) {
  EXPECT_GT(AvailableMemoryBytes(), int64_t{1} << 20);
  EXPECT_LT(AvailableMemoryBytes(), int64_t{1} << 50);
}

}  // namespace
}  // namespace ssl
