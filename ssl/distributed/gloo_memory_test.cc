// SPDX-License-Identifier: Apache-2.0
//
// A rank that runs out of memory in an operation, while its process and the other ranks live on.
#include <ATen/ops/full.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

// Of this process while it lives: what it has, and 32 MiB more.
class MemoryLimit {
 public:
  MemoryLimit() {
    EXPECT_EQ(getrlimit(RLIMIT_AS, &limit_), 0);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit lower = limit_;
    lower.rlim_cur = pages * sysconf(_SC_PAGESIZE) + (int64_t{32} << 20);
    EXPECT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  }
  ~MemoryLimit() { EXPECT_EQ(setrlimit(RLIMIT_AS, &limit_), 0); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit limit_;
};

// Its process lives on.
TEST(GlooMemoryTest, RankWithoutMemoryForAnOperation_EndsItForTheOthersAtOnce) {
  EXPECT_OK(ProcessWorld(2, absl::Seconds(10)).Run([](Communicator& communicator) -> absl::Status {
    const absl::StatusOr<std::unique_ptr<Communicator>> other = communicator.Duplicate();
    if (!other.ok()) return other.status();
    const at::Tensor one = at::full({1}, 1, at::kFloat).expand({int64_t{1} << 24});  // 64 MiB when it is copied
    if (communicator.rank() == 1) {
      const MemoryLimit limit;
      const absl::Status status = communicator.AllGather(one).status();
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
      EXPECT_EQ(communicator.Barrier(), status);  // out of use
    } else {
      EXPECT_THAT(communicator.AllGather(one),
                  StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost a connection")));
    }
    return (*other)->Barrier();
  }));
}

}  // namespace
}  // namespace ssl
