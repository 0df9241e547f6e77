// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/pinned_memory.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>
#include <c10/util/llvmMathExtras.h>

#include "ssl/base/error_detail.h"
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
  at::Tensor tensor;
  const absl::Status status = GuardTorch("pinned memory", [&] {
    tensor = at::detail::empty_generic(sizes, AllocatorFor(device), on_host, type, format);
    return absl::OkStatus();
  });
  // CUDA says the same of memory that it cannot pin as of its own.
  TORCH_CHECK(DetailOf(status, kDetailCause) != kCauseMemory,
              "not enough memory: ", c10::multiply_integers(sizes) * static_cast<int64_t>(c10::elementSize(type)),
              " bytes of the host's memory were asked for", device.is_cpu() ? "" : ", pinned");
  TORCH_CHECK(status.ok(), status.message());
  return tensor;
}

int64_t PinnedBytes(int64_t bytes, const c10::Device& device) {
  return device.is_cpu() ? bytes : static_cast<int64_t>(c10::llvm::PowerOf2Ceil(static_cast<uint64_t>(bytes)));
}

void ReleaseUnusedPinned(const c10::Device& device) {
  if (device.is_cpu()) return;
  // A device of a host program need not keep any.
  GuardTorch("pinned memory", [&] {
    // CUDA would free it by way of the thread's current device, which need not be this process's.
    const c10::DeviceGuard guard(device);
    at::getHostAllocator(device.type())->empty_cache();
    return absl::OkStatus();
  }).IgnoreError();
}

void FinishAndReleasePinned(const c10::Device& device) {
  if (device.is_cpu()) return;
  GuardTorch("waiting for copies", [&] {
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
    return absl::OkStatus();
  }).IgnoreError();
  ReleaseUnusedPinned(device);
}

}  // namespace ssl
