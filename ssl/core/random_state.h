// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's generators as part of a run's state.
#ifndef SSL_CORE_RANDOM_STATE_H_
#define SSL_CORE_RANDOM_STATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ssl/core/stateful.h"

namespace ssl {

// The default CPU generator, which dropout and random initialisation draw from.
class RandomState : public Stateful {
 public:
  // Seeds it; ranks get different seeds.
  static void Seed(int64_t seed, int64_t rank);

  void VisitState(StateVisitor& visitor) override;

 private:
  at::Tensor state_;  // [bytes] uint8, as of the last walk
};

}  // namespace ssl

#endif  // SSL_CORE_RANDOM_STATE_H_
