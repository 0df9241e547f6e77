// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/profile_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = ProfiledEvent::Kind;

constexpr uint64_t kMs = 1000000;

ProfiledEvent Make(const std::string& name, uint64_t begin, uint64_t end, Kind kind = Kind::kOperator,
                   uint64_t thread = 1) {
  return {name, kind, thread, begin * kMs, end * kMs};
}

TEST(ProfileTableTest, OperatorsCount_WithoutThoseThatTheyCall) {
  EXPECT_EQ(ProfileTable({Make("ProfilerStep#1", 0, 100, Kind::kRange), Make("conv", 10, 50), Make("mkldnn", 15, 45),
                          Make("add", 50, 60), Make("conv", 60, 64), Make("other thread", 0, 36, Kind::kOperator, 2)}),
            "most of 90.0 ms of all operators:\n"
            "   share         ms    calls  name\n"
            "  40.0 %      36.00        1  other thread\n"
            "  33.3 %      30.00        1  mkldnn\n"
            "  15.6 %      14.00        2  conv\n"
            "  11.1 %      10.00        1  add\n");
}

TEST(ProfileTableTest, WhereThereAreKernels_TheyAloneAreTold) {
  const std::string table =
      ProfileTable({Make("aten::mm", 0, 100), Make("step", 0, 100, Kind::kRange), Make("gemm", 0, 30, Kind::kKernel),
                    Make("Memcpy HtoD", 5, 15, Kind::kKernel), Make("gemm", 30, 60, Kind::kKernel)});
  EXPECT_EQ(table,
            "most of 70.0 ms of all kernels and copies:\n"
            "   share         ms    calls  name\n"
            "  85.7 %      60.00        2  gemm\n"
            "  14.3 %      10.00        1  Memcpy HtoD\n");
}

TEST(ProfileTableTest, TenNamesAreTold_AndLongOnesAreCut) {
  std::vector<ProfiledEvent> events;
  for (uint64_t i = 1; i <= 12; ++i) events.push_back(Make(std::string(i, 'x'), 100 * i, 101 * i, Kind::kKernel));
  events.push_back(Make(std::string(300, 'k'), 0, 90, Kind::kKernel));
  const std::string table = ProfileTable(events);
  EXPECT_THAT(table, HasSubstr(" " + std::string(88, 'k') + "\n"));
  EXPECT_THAT(table, Not(HasSubstr("  xxx\n"))) << "the eleventh";
  EXPECT_EQ(ProfileTable({}), "");
}

}  // namespace
}  // namespace ssl
