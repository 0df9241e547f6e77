// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/default_generators.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/cat.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>
#include <optional>

#include "ssl/base/accelerator_type.h"

namespace ssl {
namespace {

// Whether anything was computed there. An allocator that does not say so may have been used.
bool IsInUse(c10::DeviceType type) {
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(type));
  return allocator == nullptr || allocator->initialized();
}

std::optional<at::Generator> AcceleratorGenerator() {
  const std::optional<c10::Device> device = CurrentAccelerator();
  if (!device.has_value()) return std::nullopt;
  return at::globalContext().getAcceleratorHooksInterface(device->type()).getDefaultGenerator(device->index());
}

at::Tensor StateOf(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void SetStateOf(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

void SetSeedOf(at::Generator generator, uint64_t seed) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

// A run on the CPU shall neither set an accelerator up nor ask its driver, which takes long where there is one.
std::optional<c10::Device> CurrentAccelerator() {
  const std::optional<c10::DeviceType> type = AcceleratorType();
  if (!type.has_value() || !IsInUse(*type)) return std::nullopt;
  const c10::impl::VirtualGuardImpl guard(*type);
  if (guard.deviceCount() == 0) return std::nullopt;
  const c10::Device device = guard.getDevice();
  const bool is_set_up = at::globalContext().getAcceleratorHooksInterface(*type).hasPrimaryContext(device.index());
  return is_set_up ? std::optional<c10::Device>(device) : std::nullopt;
}

at::Tensor GeneratorState() {
  const at::Tensor of_cpu = StateOf(at::detail::getDefaultCPUGenerator());
  const std::optional<at::Generator> accelerator = AcceleratorGenerator();
  return accelerator.has_value() ? at::cat({of_cpu, StateOf(*accelerator)}) : of_cpu;
}

void SetGeneratorState(const at::Tensor& state) {
  const int64_t of_cpu = StateOf(at::detail::getDefaultCPUGenerator()).numel();
  SetStateOf(at::detail::getDefaultCPUGenerator(), state.narrow(0, 0, of_cpu));
  const std::optional<at::Generator> accelerator = AcceleratorGenerator();
  if (!accelerator.has_value() || state.numel() == of_cpu) return;
  SetStateOf(*accelerator, state.narrow(0, of_cpu, state.numel() - of_cpu).clone());
}

void SeedGenerators(uint64_t seed) {
  SetSeedOf(at::detail::getDefaultCPUGenerator(), seed);
  const std::optional<at::Generator> accelerator = AcceleratorGenerator();
  if (accelerator.has_value()) SetSeedOf(*accelerator, seed);
}

}  // namespace ssl
