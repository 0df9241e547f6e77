// SPDX-License-Identifier: Apache-2.0
#include "ssl/testing/standin_device.h"

#include <ATen/core/Generator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "ssl/testing/standin_autocast.h"
#include "ssl/testing/standin_fallback.h"
#include "ssl/testing/standin_generator.h"
#include "ssl/testing/standin_memory.h"
#include "ssl/testing/standin_pinned_memory.h"
#include "ssl/testing/standin_recording.h"
#include "ssl/testing/standin_streams.h"

namespace ssl {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

// One device.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return StandinDevice::device(); }
  c10::Device getDevice() const override { return StandinDevice::device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device) const override { return CurrentStandinStream(); }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return NewStandinStream(); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return ExchangeStandinStream(stream); }
  bool queryStream(const c10::Stream& stream) const override { return StandinStreamIsDone(stream); }
  void synchronizeStream(const c10::Stream& stream) const override {
    RefuseInRecording("synchronize stream");
    WaitForStandinStream(stream);
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    RefuseInRecording("synchronize device");
    FinishStandinStreams();
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    RecordStandinEvent(event, stream);
  }
  void block(void* event, const c10::Stream& stream) const override { BlockOnStandinEvent(event, stream); }
  bool queryEvent(void* event) const override { return StandinEventIsDone(event); }
  void synchronizeEvent(void* event) const override { WaitForStandinEvent(event); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { DestroyStandinEvent(event); }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return DefaultStandinGenerator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return MakeStandinGenerator(); }
  c10::Device getDeviceFromPtr(void*) const override { return StandinDevice::device(); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &StandinPinnedAllocator(); }
  bool isPinnedPtr(const void* memory) const override { return IsPinnedForStandin(memory); }
};

// LibTorch forgets the kernels of a library that is destroyed.
struct Libraries {
  using Library = torch::Library;
  Library fallback{Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__};
  Library operators{Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__};
  Library not_cast{Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__};
  Library cast{Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__};
};

bool Register() {
  c10::register_privateuse1_backend("standin");
  static const auto& guard = *new Guard;
  const c10::impl::DeviceGuardImplRegistrar registrar(kType, &guard);
  static auto& hooks = *new Hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  at::setHostAllocator(kType, &StandinPinnedAllocator());
  SetStandinAllocator();
  static auto& libraries = *new Libraries;
  RegisterStandinFallback(&libraries.fallback);
  RegisterStandinMemory(&libraries.operators);
  RegisterStandinOperators(&libraries.operators);
  RegisterStandinAutocastFallthrough(&libraries.not_cast);
  RegisterStandinAutocast(&libraries.cast);
  return true;
}

}  // namespace

void StandinDevice::Install() {
  static const bool registered = Register();
  (void)registered;
}

}  // namespace ssl
