// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_memory.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_pinned_memory.h"
#include "ssl/testing/standin_recording.h"
#include "ssl/testing/standin_streams.h"
#include "ssl/testing/standin_transfers.h"

namespace ssl {
namespace {

// Added to the address of memory: beyond what Linux gives to a process on x86-64, so that a host that reads it is told
// at once, by a signal.
constexpr uintptr_t kDeviceOffset = uintptr_t{1} << 47;

void* DeviceAddress(void* host) {
  return host != nullptr ? reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) + kDeviceOffset) : nullptr;
}

void* HostAddress(const void* device) {
  return device != nullptr ? reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(device) - kDeviceOffset) : nullptr;
}

// Whoever shares it keeps memory of the device, even where a tensor goes on in other memory.
using Owner = std::shared_ptr<void>;

c10::DataPtr Owned(void* host, Owner owner) {
  return {DeviceAddress(host), new Owner(std::move(owner)), [](void* context) { delete static_cast<Owner*>(context); },
          StandinDevice::device()};
}

Owner OwnerOf(const c10::DataPtr& memory) {
  const void* const context = memory.get_context();
  return context != nullptr ? *static_cast<const Owner*>(context) : nullptr;
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    const auto memory = std::make_shared<c10::DataPtr>(c10::GetCPUAllocator()->allocate(size));
    return Owned(memory->get(), memory);
  }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    if (size > 0) std::memcpy(HostAddress(to), HostAddress(from), size);
  }
};

c10::Allocator& StandinAllocator() {
  static auto& allocator = *new Allocator;
  return allocator;
}

c10::DispatchKeySet Keys() { return c10::DispatchKeySet(c10::DispatchKey::PrivateUse1); }

void CheckIndex(const std::optional<at::Device>& device) {
  TORCH_CHECK(!device.has_value() || device->index() <= 0, "there is one stand-in device: device index is ",
              static_cast<int>(device->index()), ", expected 0");
}

at::Tensor Empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device, std::optional<bool> /*pin_memory*/,
                 std::optional<at::MemoryFormat> format) {
  CheckIndex(device);
  return at::detail::empty_generic(size, &StandinAllocator(), Keys(), type.value_or(at::kFloat), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                        std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                        std::optional<bool> /*pin_memory*/) {
  CheckIndex(device);
  return at::detail::empty_strided_generic(size, stride, &StandinAllocator(), Keys(), type.value_or(at::kFloat));
}

std::string Description(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes();
  return text.str();
}

void Read(const std::string& what) {
  RefuseInRecording(what);
  CountRead(what);
}

void Upload(const std::string& what) {
  RefuseInRecording(what);
  CountUpload(what);
}

// A copy from memory that is not pinned waits, as on a GPU.
at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (!IsOnStandin(to)) Read("copy to the host of " + Description(from));
  if (!IsOnStandin(from)) Upload("copy to the device of " + Description(from));
  const auto copy = [host_from = HostView(from), host_to = HostView(to)] { host_to.copy_(host_from); };
  if (non_blocking && !IsOnStandin(from) && IsPinnedForStandin(from.const_data_ptr())) {
    CopyOnStandinStream(copy);
  } else {
    FinishStandinStream(CurrentStandinStream());
    KeepStandinBusy();
    if (!IsOnStandin(to) || !IsOnStandin(from)) WaitForStandinStream(CurrentStandinStream());
    RunAndNote(copy);
  }
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  at::Tensor resized = to;
  resized.resize_(from.sizes());
  return CopyFrom(from, resized, /*non_blocking=*/false);
}

at::Scalar ReadScalar(const at::Tensor& tensor) {
  Read("aten::_local_scalar_dense");
  WaitForStandinStream(CurrentStandinStream());
  return at::_local_scalar_dense(HostView(tensor));
}

const at::Tensor& Resize(const at::Tensor& tensor, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  c10::StorageImpl& storage = *impl.unsafe_storage().unsafeGetStorageImpl();
  const size_t bytes =
      at::detail::computeStorageNbytesContiguous(size, tensor.itemsize(), static_cast<size_t>(tensor.storage_offset()));
  if (bytes > storage.nbytes()) {
    c10::DataPtr memory = StandinAllocator().allocate(bytes);
    RunAndNote([to = memory.get(), new_owner = OwnerOf(memory), from = storage.data(),
                owner = OwnerOf(storage.data_ptr()),
                bytes = storage.nbytes()] { StandinAllocator().copy_data(to, from, bytes); });
    storage.set_data_ptr_noswap(std::move(memory));
    storage.set_nbytes(bytes);
  }
  impl.set_sizes_contiguous(size);
  if (format.has_value() && *format != at::MemoryFormat::Preserve) impl.empty_tensor_restride(*format);
  return tensor;
}

// Whether a tensor may take over another's memory (set_data); LibTorch's own answer knows its own devices only.
bool HaveSameLayout(const at::Tensor& one, const at::Tensor& other) { return one.layout() == other.layout(); }

}  // namespace

void SetStandinAllocator() { c10::SetAllocator(c10::DeviceType::PrivateUse1, &StandinAllocator()); }

void RegisterStandinMemory(torch::Library* library) {
  library->impl("empty.memory_format", &Empty);
  library->impl("empty_strided", &EmptyStrided);
  library->impl("_copy_from", &CopyFrom);
  library->impl("_copy_from_and_resize", &CopyFromAndResize);
  library->impl("_local_scalar_dense", &ReadScalar);
  library->impl("_has_compatible_shallow_copy_type", &HaveSameLayout);
  library->impl("resize_", &Resize);
  // Those of the CPU, which read no values.
  library->impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library->impl("as_strided", &at::native::as_strided_tensorimpl);
  library->impl("view", TORCH_FN(at::native::view));
  library->impl("unfold", &at::native::unfold);
  library->impl("_reshape_alias", &at::native::_reshape_alias);
}

bool IsOnStandin(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

at::Tensor HostView(const at::Tensor& tensor) {
  if (!IsOnStandin(tensor)) return tensor;
  const at::TensorOptions options = tensor.options().device(at::kCPU);
  if (tensor.numel() == 0) return at::empty(tensor.sizes(), options);
  return at::for_blob(HostAddress(tensor.const_data_ptr()), tensor.sizes())
      .strides(tensor.strides())
      .deleter([owner = OwnerOf(tensor.storage().data_ptr())](void*) {})
      .options(options)
      .make_tensor();
}

at::Tensor DeviceView(const at::Tensor& tensor) {
  if (!tensor.defined() || IsOnStandin(tensor)) return tensor;
  c10::DataPtr memory = Owned(tensor.storage().mutable_data(), std::make_shared<at::Tensor>(tensor));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
                                                       std::move(memory), &StandinAllocator(), /*resizable=*/true);
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), Keys(), tensor.dtype());
  view.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return view;
}

}  // namespace ssl
