// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/memory_empty_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr int64_t kFloats = int64_t{4} << 20;  // 16 MiB
constexpr int64_t kMegabyte = int64_t{1} << 20;

class MemoryEmptyHookTest : public ::testing::Test {
 protected:
  MemoryEmptyHookTest() { InstallTensorMemory(); }

  void StepAt(int64_t iteration) {
    step_.state.iteration = iteration;
    ASSERT_OK(hook_.OnStep(step_.context));
  }

  FakeStep step_;
  MemoryEmptyHook hook_{[] {
    MemoryEmptyOptions options;
    options.freq = 5;
    return options;
  }()};
};

TEST_F(MemoryEmptyHookTest, KeptTensorMemory_IsGivenBackAndThePeakStartsAnew) {
  const at::Tensor held = at::ones({kFloats});
  at::ones({kFloats});
  ASSERT_GE(GetTensorMemory().kept, kFloats * 4);
  ASSERT_GE(GetTensorMemory().peak, 2 * kFloats * 4);

  for (const int64_t iteration : {0, 4, 6}) StepAt(iteration);
  EXPECT_GE(GetTensorMemory().kept, kFloats * 4) << "not yet";
  StepAt(5);

  EXPECT_EQ(GetTensorMemory().kept, 0);
  EXPECT_EQ(GetTensorMemory().peak, GetTensorMemory().in_use);
  EXPECT_GE(GetTensorMemory().in_use, kFloats * 4);
}

// Sanitizers put an allocator of their own in the place of the one that gives memory back.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(MemoryEmptyHookTest, MemoryOfTheAllocator_IsGivenBack) {
  // 64 MiB in small pieces. One of 64 stays, so that the allocator cannot give the others back by itself.
  constexpr size_t kStays = 64;
  std::vector<void*> pieces(64 * 1024);
  for (void*& piece : pieces) {
    piece = std::malloc(1000);
    std::memset(piece, 1, 1000);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i % kStays != 0) std::free(pieces[i]);
  }
  ReleaseTensorMemory();  // not what is measured here
  const int64_t before = ReadProcessMemory().resident_bytes;

  StepAt(10);

  EXPECT_GE(before - ReadProcessMemory().resident_bytes, 40 * kMegabyte);
  for (size_t i = 0; i < pieces.size(); i += kStays) std::free(pieces[i]);
}
#endif

TEST_F(MemoryEmptyHookTest, TestPhases_AreLeftAlone) {
  at::ones({kFloats});
  ASSERT_GE(GetTensorMemory().kept, kFloats * 4);
  step_.state.training = false;
  StepAt(5);
  EXPECT_GE(GetTensorMemory().kept, kFloats * 4);
}

}  // namespace
}  // namespace ssl
