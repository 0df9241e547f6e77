// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's default generators: the CPU's, and that of the accelerator that the thread computes on
// (accelerator_type.h), if it does. There is one of each for the whole process. Thread-safe, each call by itself.
#ifndef SSL_BASE_DEFAULT_GENERATORS_H_
#define SSL_BASE_DEFAULT_GENERATORS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace ssl {

// The accelerator that this thread computes on, if the process does.
std::optional<c10::Device> CurrentAccelerator();

// [bytes] uint8: what the generators draw from here on. Nobody waits for the device.
at::Tensor GeneratorState();

// They draw what followed the moment of `state`, which is of the accelerator that this thread computes on, too. Where
// that was without an accelerator, its generator stays as it is.
void SetGeneratorState(const at::Tensor& state);

// Both get this seed.
void SeedGenerators(uint64_t seed);

}  // namespace ssl

#endif  // SSL_BASE_DEFAULT_GENERATORS_H_
