// SPDX-License-Identifier: Apache-2.0
//
// Which samples of a test phase count. Ranks have equally many, so that where their number does not divide the data
// some ranks end with a sample that another one has as well (ssl/data/data_source_builder.h): what meters
// measure is measured once for each sample, on any number of ranks. The loss of a test phase is not: it is the mean of
// the batches' losses, with these samples in them.
#ifndef SSL_CORE_COUNTED_SAMPLES_H_
#define SSL_CORE_COUNTED_SAMPLES_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/status.h"
#include "ssl/core/meter.h"
#include "ssl/core/step_context.h"

namespace ssl {

// Adds the samples of context.batch that count to `meter`, each of which has a row in each of `outputs`: in a train
// phase all, in a test phase all but a last one that fills up this rank's share. May throw LibTorch exceptions.
absl::Status UpdateWithCounted(const std::vector<at::Tensor>& outputs, const StepContext& context, Meter& meter);

}  // namespace ssl

#endif  // SSL_CORE_COUNTED_SAMPLES_H_
