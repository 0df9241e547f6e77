// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

namespace ssl {
namespace {

// Smaller blocks are the general allocator's: it reuses them well.
constexpr size_t kLargeBytes = size_t{1} << 18;
constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{1} << 21;
// A tensor that fits none of the kept blocks makes the largest of them go back to the system while all blocks together
// would exceed this multiple of what was ever in use at once: it bounds what keeping blocks can cost.
constexpr double kMostOfPeak = 1.1;
// A tensor takes a block that is larger by at most this part of its size.
constexpr size_t kLargerShare = 4;
constexpr int64_t kAlwaysAllowed = int64_t{64} << 20;
// Above LibTorch's own allocators.
constexpr uint8_t kPriority = 100;

// Stands right before the data of each block.
struct alignas(kAlignment) Header {
  void* mapping;  // what the system gave; nullptr for a small block, which the general allocator gave
  size_t mapping_bytes;
  size_t bytes;  // header and data
};

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// A block of `bytes` that begins at a huge page; nullptr when the system has no memory.
Header* MapBlock(size_t bytes) {
  const size_t mapping_bytes = bytes + kHugePage;
  void* mapping = mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  const size_t begin = RoundUp(reinterpret_cast<size_t>(mapping), kHugePage);
  Header* block = reinterpret_cast<Header*>(begin);
  // Whole huge pages only: the rest of a last one would be memory that nobody uses. Advice: a system without huge
  // pages serves small ones.
  madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  *block = {mapping, mapping_bytes, bytes};
  return block;
}

class Blocks {
 public:
  // bytes: of the data.
  void* Take(size_t bytes) {
    const size_t size = RoundUp(bytes + sizeof(Header), kPage);
    const std::lock_guard<std::mutex> lock(mutex_);
    Header* block = TakeKept(size);
    if (block == nullptr) {
      while (!MayGrowBy(size) && !kept_.empty()) ReleaseLargest();
      block = MapBlock(size);
    }
    if (block == nullptr) return nullptr;
    memory_.in_use += static_cast<int64_t>(block->bytes);
    most_in_use_ = std::max(most_in_use_, memory_.in_use);
    memory_.peak = std::max(memory_.peak, memory_.in_use);
    return block + 1;
  }

  void Give(void* data) {
    Header* block = static_cast<Header*>(data) - 1;
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_[block->bytes].push_back(block);
    memory_.in_use -= static_cast<int64_t>(block->bytes);
    memory_.kept += static_cast<int64_t>(block->bytes);
  }

  void Release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!kept_.empty()) ReleaseLargest();
  }

  void ResetPeak() {
    const std::lock_guard<std::mutex> lock(mutex_);
    memory_.peak = memory_.in_use;
  }

  TensorMemory memory() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return memory_;
  }

 private:
  // The smallest kept block that holds `size` and is not much larger.
  Header* TakeKept(size_t size) {
    const auto found = kept_.lower_bound(size);
    if (found == kept_.end() || found->first > size + size / kLargerShare) return nullptr;
    Header* block = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) kept_.erase(found);
    memory_.kept -= static_cast<int64_t>(block->bytes);
    return block;
  }

  bool MayGrowBy(size_t size) const {
    const int64_t all = memory_.in_use + memory_.kept + static_cast<int64_t>(size);
    return static_cast<double>(all) <= kMostOfPeak * static_cast<double>(most_in_use_) + kAlwaysAllowed;
  }

  void ReleaseLargest() {
    const auto largest = std::prev(kept_.end());
    Header* block = largest->second.back();
    largest->second.pop_back();
    if (largest->second.empty()) kept_.erase(largest);
    memory_.kept -= static_cast<int64_t>(block->bytes);
    munmap(block->mapping, block->mapping_bytes);
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<Header*>> kept_;  // by size of the block; no empty lists
  TensorMemory memory_;
  int64_t most_in_use_ = 0;  // ever
};

// Never destroyed: tensors in static storage may outlive everything else.
Blocks& ProcessBlocks() {
  static auto* const blocks = new Blocks();
  return *blocks;
}

void* TakeSmall(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, sizeof(Header) + bytes) != 0) return nullptr;
  *static_cast<Header*>(block) = {nullptr, 0, bytes};
  return static_cast<Header*>(block) + 1;
}

void Delete(void* data) {
  if (data == nullptr) return;
  Header* block = static_cast<Header*>(data) - 1;
  if (block->mapping == nullptr) {
    std::free(block);
  } else {
    ProcessBlocks().Give(data);
  }
}

class TensorAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &Delete, cpu};
    void* data = bytes < kLargeBytes ? TakeSmall(bytes) : ProcessBlocks().Take(bytes);
    // As LibTorch's own for the CPU; c10::OutOfMemoryError is the accelerators' (ssl/base/torch_guard.h).
    TORCH_CHECK(data != nullptr, "not enough memory for a tensor of ", bytes, " bytes");
    return {data, data, &Delete, cpu};
  }

  // One deleter for blocks of all sizes, which LibTorch's convolutions ask for.
  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }

  void copy_data(void* destination, const void* source, size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
};

// LibTorch keeps the pointer for the life of the process.
TensorAllocator* ProcessAllocator() {
  static auto* const allocator = new TensorAllocator();
  return allocator;
}

}  // namespace

void InstallTensorMemory() { c10::SetCPUAllocator(ProcessAllocator(), kPriority); }

bool TensorMemoryIsInstalled() { return c10::GetCPUAllocator() == ProcessAllocator(); }

TensorMemory GetTensorMemory() { return ProcessBlocks().memory(); }

void ResetTensorMemoryPeak() { ProcessBlocks().ResetPeak(); }

void ReleaseTensorMemory() { ProcessBlocks().Release(); }

}  // namespace ssl
