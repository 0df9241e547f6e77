// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_pinned_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ssl {
namespace {

struct Block {
  c10::DataPtr memory;  // of the CPU's allocator
  size_t size = 0;
};

// Of the process, as LibTorch's devices are.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> sizes;  // by address, of what is in use
  std::vector<Block> unused;
  int64_t allocations = 0;
  bool fails_next = false;
};

Pinned& Process() {
  static auto& pinned = *new Pinned;
  return pinned;
}

// context: a Block.
void Free(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().sizes.erase(static_cast<const char*>(block->memory.get()));
  Process().unused.push_back(std::move(*block));
}

// With the lock.
Block TakeBlock(size_t size) {
  std::vector<Block>& unused = Process().unused;
  const auto found = std::find_if(unused.begin(), unused.end(), [size](const Block& b) { return b.size == size; });
  if (found == unused.end()) return {c10::GetCPUAllocator()->allocate(size), size};
  Block block = std::move(*found);
  unused.erase(found);
  return block;
}

struct Allocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t size) override {
    const std::lock_guard<std::mutex> lock(Process().mutex);
    const bool fails = std::exchange(Process().fails_next, false);
    TORCH_CHECK(!fails, "CUDA error: out of memory");
    ++Process().allocations;
    auto block = std::make_unique<Block>(TakeBlock(size));
    void* const address = block->memory.get();
    Process().sizes[static_cast<const char*>(address)] = size;
    return {address, block.release(), &Free, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t size) const override { default_copy_data(to, from, size); }
  bool record_event(void*, void*, c10::Stream) override { return true; }  // copies are waited for by who frees
  void empty_cache() override {
    const std::lock_guard<std::mutex> lock(Process().mutex);
    Process().unused.clear();
  }
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

}  // namespace

int64_t PinnedAllocations() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  return Process().allocations;
}

int64_t UnusedPinnedBytes() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  int64_t bytes = 0;
  for (const Block& block : Process().unused) bytes += static_cast<int64_t>(block.size);
  return bytes;
}

void FailNextPinning() {
  const std::lock_guard<std::mutex> lock(Process().mutex);
  Process().fails_next = true;
}

at::HostAllocator& StandinPinnedAllocator() {
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
