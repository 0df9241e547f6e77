// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_pinned_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace ssl {
namespace {

// Of the process, as LibTorch's devices are.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> sizes;  // by address, of what is in use
  int64_t allocations = 0;
  bool fails_next = false;
};

Pinned& Process() {
  static auto& pinned = *new Pinned;
  return pinned;
}

// context: the memory of the CPU's allocator.
void Free(void* context) {
  auto* const memory = static_cast<c10::DataPtr*>(context);
  {
    const std::lock_guard<std::mutex> lock(Process().mutex);
    Process().sizes.erase(static_cast<const char*>(memory->get()));
  }
  delete memory;
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    auto memory = std::make_unique<c10::DataPtr>(c10::GetCPUAllocator()->allocate(size));
    const std::lock_guard<std::mutex> lock(Process().mutex);
    const bool fails = std::exchange(Process().fails_next, false);
    TORCH_CHECK(!fails, "CUDA error: out of memory");
    ++Process().allocations;
    Process().sizes[static_cast<const char*>(memory->get())] = size;
    void* const address = memory->get();
    return {address, memory.release(), &Free, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t size) const override { default_copy_data(to, from, size); }
};

}  // namespace

int64_t PinnedAllocations() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  return Process().allocations;
}

void FailNextPinning() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().fails_next = true;
}

c10::Allocator& StandinPinnedAllocator() {
  static auto& allocator = *new Allocator;
  return allocator;
}

bool IsPinnedForStandin(const void* memory) {
  const auto* const address = static_cast<const char*>(memory);
  const std::lock_guard<std::mutex> lock(Process().mutex);
  const auto behind = Process().sizes.upper_bound(address);
  if (behind == Process().sizes.begin()) return false;
  const auto& [begin, size] = *std::prev(behind);
  return address < begin + size;
}

}  // namespace ssl
