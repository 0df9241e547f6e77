// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/process_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

constexpr int64_t kBlock = 64 << 20;

TEST(ProcessMemory, GrowsByWhatIsWritten) {
  const ProcessMemory before = ReadProcessMemory();
  std::vector<char> block(kBlock, 1);
  const ProcessMemory after = ReadProcessMemory();

  EXPECT_GT(before.resident_bytes, 0);
  EXPECT_EQ(block.back(), 1);
  EXPECT_GE(after.resident_bytes - before.resident_bytes, kBlock * 9 / 10);
  EXPECT_LE(after.resident_bytes - before.resident_bytes, kBlock * 2);
}

TEST(ProcessMemory, PeakStaysWhenMemoryIsGivenBack) {
  // Not by the allocator, which may keep what is freed.
  void* const block = mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBlock);
  ASSERT_EQ(munmap(block, kBlock), 0);

  const ProcessMemory memory = ReadProcessMemory();

  EXPECT_GE(memory.peak_bytes - memory.resident_bytes, kBlock / 2);
}

}  // namespace
}  // namespace ssl
