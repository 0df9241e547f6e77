// SPDX-License-Identifier: Apache-2.0
//
// Which samples of a test phase count. Ranks have equally many, so that where their number does not divide the data
// some ranks end with a sample that another one has as well (ssl/data/loader/data_source_builder.h): what a test phase
// says, in its meters and its mean loss, is said of each sample once, on any number of ranks.
#ifndef SSL_CORE_COUNTED_SAMPLES_H_
#define SSL_CORE_COUNTED_SAMPLES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/meter.h"
#include "ssl/core/step_context.h"

namespace ssl {

// How many samples at the beginning of context.batch count: in a train phase all, in a test phase all but a last one
// that fills up this rank's share.
int64_t CountedSamples(const StepContext& context);

// Those of them whose label, a class number, is not `ignored_label`: what the mean of a loss is over. May throw
// LibTorch exceptions.
int64_t CountedLabels(const StepContext& context, int64_t ignored_label);

// The rows of the samples of context.batch that count, of `rows`, which has one for each. May throw LibTorch
// exceptions.
at::Tensor CountedRows(const at::Tensor& rows, const StepContext& context);

// Adds the samples of context.batch that count to `meter`, each of which has a row in each of `outputs`. May throw
// LibTorch exceptions.
absl::Status UpdateWithCounted(const std::vector<at::Tensor>& outputs, const StepContext& context, Meter& meter);

}  // namespace ssl

#endif  // SSL_CORE_COUNTED_SAMPLES_H_
