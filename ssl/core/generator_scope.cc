// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/generator_scope.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>

#include "ssl/base/random.h"

namespace ssl {
namespace {

// Keeps these numbers apart from those of the augmentations, which count operations from 0.
constexpr uint64_t kTrainingStep = uint64_t{1} << 32;
// Instead of the number of a batch.
constexpr int64_t kStartOfPhase = -1;

void SetState(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

void Seed(uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

at::Tensor GeneratorState() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

GeneratorScope::GeneratorScope() : found_(GeneratorState()) {}

GeneratorScope::GeneratorScope(const at::Tensor& state) : GeneratorScope() { SetState(state); }

GeneratorScope::~GeneratorScope() { SetState(found_); }

void SeedForBuilding(int64_t seed, int64_t rank) { Seed(static_cast<uint64_t>(seed + rank)); }

void SeedForPhase(int64_t seed, int64_t rank, int64_t phase) { SeedForBatch(seed, rank, phase, kStartOfPhase); }

void SeedForBatch(int64_t seed, int64_t rank, int64_t phase, int64_t batch) {
  CounterRandom random(static_cast<uint64_t>(seed), static_cast<uint64_t>(phase), static_cast<uint64_t>(batch),
                       static_cast<uint64_t>(rank), kTrainingStep);
  Seed(random.Next());
}

}  // namespace ssl
