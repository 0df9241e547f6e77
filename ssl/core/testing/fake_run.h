// SPDX-License-Identifier: Apache-2.0
//
// What a run consists of, as far as saving goes.
#ifndef SSL_CORE_TESTING_FAKE_RUN_H_
#define SSL_CORE_TESTING_FAKE_RUN_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include "ssl/core/stateful.h"
#include "ssl/core/train_state.h"

namespace ssl {

struct FakeRun : public Stateful {
  FakeRun() { state.max_iterations = 100; }
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("model/weight", weight);
    visitor.Tensor("optimizer/momentum", momentum);
    visitor.Tensor("phase_loss", loss);
    visitor.MayBeNonFinite("phase_loss");
    visitor.Scope("train_state", state);
  }
  at::Tensor weight = at::full({3, 4}, 1.0);
  at::Tensor momentum = at::full({3, 4}, 0.5);
  at::Tensor loss = at::full({}, 0.0);
  TrainState state;
};

}  // namespace ssl

#endif  // SSL_CORE_TESTING_FAKE_RUN_H_
