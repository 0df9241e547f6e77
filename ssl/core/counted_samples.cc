// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/counted_samples.h"

#include <ATen/TensorOperators.h>

namespace ssl {
namespace {

// Of N samples in their own order rank r of W has number r, r + W, ..., and the order begins again behind number N - 1:
// so a last sample whose place lies behind the end is one of those at its beginning. Sources with other shares, as
// USE_DEBUGGING_SAMPLER's, or a host's own, have another sample there and repeat none.
bool EndsWithRepeat(const StepContext& context) {
  const bool is_last_batch = context.state.batch_in_phase + 1 == context.batches_per_epoch;
  if (context.state.training || context.source == nullptr || !is_last_batch || context.batch->size() == 0) return false;
  const int64_t samples = context.source->dataset_size();
  const int64_t ranks = context.communicator.size();
  const int64_t share = (samples + ranks - 1) / ranks;
  const int64_t place = context.communicator.rank() + (share - 1) * ranks;
  return place >= samples && context.batch->indices.select(0, -1).item<int64_t>() == place % samples;
}

}  // namespace

int64_t CountedSamples(const StepContext& context) { return context.batch->size() - (EndsWithRepeat(context) ? 1 : 0); }

int64_t CountedLabels(const StepContext& context, int64_t ignored_label) {
  const at::Tensor& targets = context.batch->targets;
  if (!targets.defined() || targets.dim() != 1 || targets.scalar_type() != at::kLong) return CountedSamples(context);
  return CountedRows(targets, context).ne(ignored_label).sum().item<int64_t>();
}

at::Tensor CountedRows(const at::Tensor& rows, const StepContext& context) {
  return EndsWithRepeat(context) ? rows.slice(0, 0, -1) : rows;
}

absl::Status UpdateWithCounted(const std::vector<at::Tensor>& outputs, const StepContext& context, Meter& meter) {
  const at::Tensor& targets = context.batch->targets;
  if (!targets.defined() || !EndsWithRepeat(context)) return meter.Update(outputs, targets);
  if (context.batch->size() == 1) return absl::OkStatus();
  std::vector<at::Tensor> of_counted;
  for (const at::Tensor& output : outputs) of_counted.push_back(CountedRows(output, context));
  return meter.Update(of_counted, CountedRows(targets, context));
}

}  // namespace ssl
