// SPDX-License-Identifier: Apache-2.0
//
// A method's loss on data that it does not learn from, measured beside training and without a trace in it: the model is
// in evaluation mode, no gradient is computed, and what the method remembers (queues, a momentum encoder's statistics),
// the generator and the metrics of the step in progress are as before.
#ifndef SSL_HOOKS_VALIDATION_LOSS_H_
#define SSL_HOOKS_VALIDATION_LOSS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/autocast.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/method.h"
#include "ssl/core/step_context.h"

namespace ssl {

// What is measured, and how.
struct ValidationLossRun {
  Method& method;
  BatchSource& source;
  Autocast autocast = Autocast::kOff;
  int64_t seed = 0;         // of what model and method draw, the same each time
  int64_t num_classes = 0;  // that labels may name; 0 when it is not known
};

struct ValidationLoss {
  double mean = 0.0;    // over the batches of epoch 0 and all ranks
  int64_t samples = 0;  // in those batches
};

// A last batch that is not full is left out, unless it is the only one: a loss that compares images with each other
// depends on their number. Nullopt on all ranks once somebody asks the run to stop (context.interruption). After the
// first update only: before it, methods get ready. Collective.
absl::StatusOr<std::optional<ValidationLoss>> MeasureValidationLoss(const ValidationLossRun& run, StepContext& context);

// The error that MeasureValidationLoss would find in the first batch. Collective, as above.
absl::Status TryValidationLoss(const ValidationLossRun& run, StepContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_VALIDATION_LOSS_H_
