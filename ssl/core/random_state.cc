// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/random_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>

namespace ssl {

void RandomState::Seed(int64_t seed, int64_t rank) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(static_cast<uint64_t>(seed + rank));
}

void RandomState::VisitState(StateVisitor& visitor) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    state_ = generator.get_state();
  }
  visitor.Tensor("cpu", state_);
  visitor.OnRestored([this, generator]() mutable {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state_);
  });
}

}  // namespace ssl
