// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/optimizer.h"

namespace ssl {

void Optimizer::ZeroGrad() {
  for (ParameterGroup& group : groups()) {
    for (at::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
  }
}

bool SkipsUpdate(const at::Tensor& found_inf) { return found_inf.defined() && found_inf.item<float>() != 0.0F; }

}  // namespace ssl
