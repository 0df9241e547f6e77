// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/pinned_memory.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include "ssl/base/torch_guard.h"

namespace ssl {
namespace {

c10::Allocator* AllocatorFor(const c10::Device& device) {
  c10::Allocator* allocator = c10::GetCPUAllocator();
  if (device.is_cpu()) return allocator;
  // LibTorch has no way to ask but this.
  const absl::Status has_own = GuardTorch("pinned memory", [&] {
    allocator = at::globalContext().getAcceleratorHooksInterface(device.type()).getPinnedMemoryAllocator();
    return absl::OkStatus();
  });
  return has_own.ok() ? allocator : c10::GetCPUAllocator();
}

}  // namespace

at::Tensor EmptyPinned(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format, const c10::Device& device) {
  const c10::DispatchKeySet on_host(c10::DispatchKey::CPU);
  return at::Tensor(at::detail::empty_generic(sizes, AllocatorFor(device), on_host, type, format));
}

}  // namespace ssl
