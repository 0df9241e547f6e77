// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/method.h"

#include "ssl/core/step_context.h"

namespace ssl {

absl::Status Method::Forward(StepContext& context) {
  context.outputs = context.model.Forward(context.batch->views);
  return absl::OkStatus();
}

}  // namespace ssl
