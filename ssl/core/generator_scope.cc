// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/generator_scope.h"

#include "ssl/base/default_generators.h"
#include "ssl/base/random.h"

namespace ssl {
namespace {

// Keeps these numbers apart from those of the augmentations, which count operations from 0.
constexpr uint64_t kTrainingStep = uint64_t{1} << 32;
// Instead of the number of a batch.
constexpr int64_t kStartOfPhase = -1;

}  // namespace

GeneratorScope::GeneratorScope() : found_(GeneratorState()) {}

GeneratorScope::GeneratorScope(const at::Tensor& state) : GeneratorScope() { SetGeneratorState(state); }

GeneratorScope::~GeneratorScope() { SetGeneratorState(found_); }

void SeedForBuilding(int64_t seed, int64_t rank) { SeedGenerators(static_cast<uint64_t>(seed + rank)); }

void SeedForPhase(int64_t seed, int64_t rank, int64_t phase) { SeedForBatch(seed, rank, phase, kStartOfPhase); }

void SeedForBatch(int64_t seed, int64_t rank, int64_t phase, int64_t batch) {
  CounterRandom random(static_cast<uint64_t>(seed), static_cast<uint64_t>(phase), static_cast<uint64_t>(batch),
                       static_cast<uint64_t>(rank), kTrainingStep);
  SeedGenerators(random.Next());
}

}  // namespace ssl
