// SPDX-License-Identifier: Apache-2.0
#include "tests/reliability/resume/random_images.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>

namespace ssl {
namespace {

constexpr int64_t kBatch = 4;
constexpr int64_t kBatchesPerEpoch = 10;
constexpr int64_t kClasses = 3;

}  // namespace

RandomImages::RandomImages(int64_t views, int64_t rank, int64_t world_size)
    : views_(views), rank_(rank), world_size_(world_size) {}

int64_t RandomImages::batches_per_epoch() const { return kBatchesPerEpoch; }

int64_t RandomImages::dataset_size() const { return kBatch * kBatchesPerEpoch * world_size_; }

absl::Status RandomImages::StartEpoch(int64_t epoch, int64_t first_batch) {
  epoch_ = epoch;
  next_ = first_batch;
  return absl::OkStatus();
}

absl::StatusOr<const Batch*> RandomImages::Next() {
  if (next_ == kBatchesPerEpoch) return nullptr;
  at::Generator generator = at::detail::createCPUGenerator((epoch_ * kBatchesPerEpoch + next_) * 100 + rank_);
  batch_.views.clear();
  for (int64_t view = 0; view < views_; ++view) batch_.views.push_back(at::rand({kBatch, 3, 8, 8}, generator));
  batch_.indices = at::arange(kBatch);
  batch_.targets = at::arange(next_, next_ + kBatch).remainder(kClasses);
  ++next_;
  return &batch_;
}

}  // namespace ssl
