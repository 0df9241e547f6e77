// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/method.h"

#include "ssl/core/step_context.h"

namespace ssl {

absl::Status Method::Forward(StepContext& context) {
  const Batch& batch = *context.batch;
  context.outputs =
      batch.named_inputs.empty() ? context.model.Forward(batch.views) : context.model.ForwardNamed(batch.named_inputs);
  return absl::OkStatus();
}

}  // namespace ssl
