// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/optimizer.h"

namespace ssl {

void Optimizer::ZeroGrad() {
  for (ParameterGroup& group : groups()) {
    for (at::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
  }
}

}  // namespace ssl
