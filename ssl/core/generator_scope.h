// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's default generators (ssl/base/default_generators.h) as a run uses them: dropout, host programs and other
// sessions draw from them as well; a run borrows them. Those of CPU and accelerator get the same seeds.
//
// What a run draws is addressed: before each phase and batch the generator is seeded by where the run stands. So its
// numbers depend neither on what else draws in the process nor on where the run was resumed, and no checkpoint holds
// them. Sessions that step at the same time on several threads of one process share the generator: what they draw is
// then not repeatable, nor is what the host draws meanwhile.
#ifndef SSL_CORE_GENERATOR_SCOPE_H_
#define SSL_CORE_GENERATOR_SCOPE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// Gives the generators back, at its end, as it found them.
class GeneratorScope {
 public:
  GeneratorScope();
  // Draws what followed the moment of `state`, a GeneratorState.
  explicit GeneratorScope(const at::Tensor& state);
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  const at::Tensor found_;  // [bytes] uint8
};

// For building the parts of a run. Ranks draw different numbers.
void SeedForBuilding(int64_t seed, int64_t rank);

// For what hooks draw when phase `phase` starts; -1: when the run does, before the first.
void SeedForPhase(int64_t seed, int64_t rank, int64_t phase);

// For batch `batch` of phase `phase`, both counted from 0.
void SeedForBatch(int64_t seed, int64_t rank, int64_t phase, int64_t batch);

}  // namespace ssl

#endif  // SSL_CORE_GENERATOR_SCOPE_H_
