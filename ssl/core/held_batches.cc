// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/held_batches.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/equal.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ssl/base/default_generators.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

// Those of a copy, which has no gaps.
at::IntArrayRef StridesOfCopy(const at::Tensor& tensor, std::vector<int64_t>* memory) {
  if (tensor.is_non_overlapping_and_dense()) return tensor.strides();
  *memory = at::infer_dense_strides(tensor.sizes(), tensor.strides());
  return *memory;
}

bool Fits(const at::Tensor& slot, const at::Tensor& tensor) {
  std::vector<int64_t> memory;
  return slot.defined() && slot.scalar_type() == tensor.scalar_type() && slot.device() == tensor.device() &&
         slot.sizes() == tensor.sizes() && slot.strides() == StridesOfCopy(tensor, &memory);
}

void Hold(const at::Tensor& tensor, at::Tensor* slot) {
  if (!tensor.defined()) {
    slot->reset();
  } else if (Fits(*slot, tensor)) {
    slot->copy_(tensor, /*non_blocking=*/true);
  } else {
    *slot = tensor.clone();
  }
}

void Hold(const Batch& batch, Batch* slot) {
  slot->views.resize(batch.views.size());
  for (size_t view = 0; view < batch.views.size(); ++view) Hold(batch.views[view], &slot->views[view]);
  std::map<std::string, at::Tensor> named;
  for (const auto& [name, input] : batch.named_inputs) {
    named[name] = slot->named_inputs[name];
    Hold(input, &named[name]);
  }
  slot->named_inputs = std::move(named);
  slot->normalizations = batch.normalizations;
  Hold(batch.targets, &slot->targets);
  Hold(batch.indices, &slot->indices);
}

}  // namespace

absl::Status HeldBatches::Take() {
  const size_t count = static_cast<size_t>(context_.batches_per_update);
  slots_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    SSL_RETURN_IF_ERROR(batches_.Next());
    Hold(*context_.batch, &slots_[i]);
    if (seeds_differ()) generator_states_.push_back(GeneratorState());
  }
  return absl::OkStatus();
}

absl::Status HeldBatches::Next() {
  SSL_RET_CHECK(next_ < slots_.size(), "an update asked for more batches than it has");
  context_.batch = &slots_[next_];
  context_.batch_in_update = static_cast<int64_t>(next_);
  if (seeds_differ()) generator_.emplace(generator_states_[next_]);
  ++next_;
  return absl::OkStatus();
}

absl::Status HeldBatches::Finish() {
  SSL_RETURN_IF_ERROR(batches_.Finish());
  Leave();
  return absl::OkStatus();
}

void HeldBatches::Count() {
  batches_.Count();
  Leave();
}

void HeldBatches::Leave() {
  if (!generator_.has_value()) return;
  drew_numbers_ = drew_numbers_ || !at::equal(GeneratorState(), generator_states_[next_ - 1]);
  generator_.reset();
}

}  // namespace ssl
