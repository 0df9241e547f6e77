// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/device_batch_source.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/accumulate.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/kernels/augment_views.h"
#include "ssl/kernels/normalize_pixels.h"

namespace ssl {
namespace {

// Views, named inputs, targets.
std::vector<at::Tensor> TensorsOf(const Batch& batch) {
  std::vector<at::Tensor> tensors = batch.views;
  for (const auto& input : batch.named_inputs) tensors.push_back(input.second);
  if (batch.targets.defined()) tensors.push_back(batch.targets);
  return tensors;
}

// `batch` with other tensors, as TensorsOf has them.
Batch WithTensors(const Batch& batch, const std::vector<at::Tensor>& tensors) {
  Batch other;
  auto next = tensors.begin();
  for (size_t v = 0; v < batch.views.size(); ++v) other.views.push_back(*next++);
  for (const auto& input : batch.named_inputs) other.named_inputs[input.first] = *next++;
  if (batch.targets.defined()) other.targets = *next;
  other.indices = batch.indices;
  return other;
}

// Whether `tensor` has the form of the first rows of `buffer`.
bool HasRoom(const at::Tensor& buffer, const at::Tensor& tensor) {
  return buffer.defined() && tensor.dim() > 0 && buffer.scalar_type() == tensor.scalar_type() &&
         buffer.sizes().slice(1) == tensor.sizes().slice(1) && buffer.strides() == tensor.strides() &&
         buffer.size(0) >= tensor.size(0);
}

}  // namespace

DeviceBatchSource::DeviceBatchSource(BatchSource& source, const c10::Device& device, TargetCheck check)
    : source_(source),
      ahead_(dynamic_cast<ReadAhead*>(&source)),
      device_(device),
      check_(std::move(check)),
      side_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)),
      slots_{Slot(device.type()), Slot(device.type())} {}

// The source may end next, and its memory with it. A device that has failed says so where it is used.
DeviceBatchSource::~DeviceBatchSource() {
  GuardTorch("waiting for copies", [this] {
    WaitForCopies();
    return absl::OkStatus();
  }).IgnoreError();
}

c10::Stream DeviceBatchSource::CurrentStream() const {
  return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
}

void DeviceBatchSource::WaitForCopies() {
  for (const Slot& slot : slots_) slot.copied.synchronize();
}

absl::Status DeviceBatchSource::StartEpoch(int64_t epoch, int64_t first_batch) {
  WaitForCopies();
  for (Slot& slot : slots_) slot.is_following = false;
  if (ahead_ != nullptr) SSL_RETURN_IF_ERROR(ahead_->PrepareFor(device_));
  return source_.StartEpoch(epoch, first_batch);
}

absl::StatusOr<const Batch*> DeviceBatchSource::Next() {
  if (perf_stats_ == nullptr) return NextOnDevice();
  const PerfTimer timer(perf_stats_, StepPart::kWaitForDevice);
  return NextOnDevice();
}

absl::StatusOr<const Batch*> DeviceBatchSource::NextOfSource() {
  if (perf_stats_ == nullptr) return source_.Next();
  const PerfTimer timer(perf_stats_, StepPart::kReadSample);
  return source_.Next();
}

absl::StatusOr<const Batch*> DeviceBatchSource::NextOnDevice() {
  Slot& slot = slots_[next_];
  Slot& before = slots_[1 - next_];
  before.free.record(CurrentStream());
  before.copied.synchronize();  // the source may write into that batch from here on
  const bool is_copied = std::exchange(slot.is_following, false);
  SSL_ASSIGN_OR_RETURN(const Batch* const batch, NextOfSource());
  if (batch == nullptr) return nullptr;
  if (!is_copied) {
    SSL_RETURN_IF_ERROR(check_(batch->targets));
    SSL_RETURN_IF_ERROR(StartCopy(*batch, ahead_ != nullptr ? ahead_->ImagesOfNext() : nullptr, &slot));
  }
  SSL_RETURN_IF_ERROR(HandOut(*batch, slot));
  next_ = 1 - next_;
  StartFollowing();
  return &batch_;
}

void DeviceBatchSource::StartFollowing() {
  const Batch* const following = ahead_ != nullptr ? ahead_->Following() : nullptr;
  // Next finds what is wrong with it once more, when it is due.
  if (following == nullptr || !check_(following->targets).ok()) return;
  Slot& slot = slots_[next_];
  slot.is_following = GuardTorch("copying a batch ahead", [&] {
                        return StartCopy(*following, ahead_->ImagesOfFollowing(), &slot);
                      }).ok();
}

absl::Status DeviceBatchSource::StartCopy(const Batch& batch, const PackedImages* images, Slot* slot) {
  const std::vector<at::Tensor> sources = TensorsOf(batch);
  slot->buffers.resize(sources.size());
  slot->tensors = sources;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].device() == device_) continue;
    at::Tensor& buffer = slot->buffers[i];
    if (HasRoom(buffer, sources[i])) {
      slot->tensors[i] = buffer.narrow(0, 0, sources[i].size(0));
    } else {
      buffer.reset();
      buffer = at::empty_like(sources[i], sources[i].options().device(device_).pinned_memory(false));
      slot->tensors[i] = buffer;
      slot->free.record(CurrentStream());  // which may still use the memory that it is made of
    }
  }
  slot->views.clear();
  if (images != nullptr) ReserveViews(*images, slot);
  slot->free.block(side_);
  const absl::Status made = GuardTorch("a batch on its way to the device", [&] {
    const c10::StreamGuard aside(side_);
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!slot->tensors[i].is_same(sources[i])) slot->tensors[i].copy_(sources[i], /*non_blocking=*/true);
    }
    return images == nullptr ? absl::OkStatus() : MakeViews(*images, slot);
  });
  slot->copied.record(side_);  // also of a part
  return made;
}

at::Tensor DeviceBatchSource::Reserve(int64_t size, at::ScalarType type, at::Tensor* buffer, Slot* slot) const {
  if (!buffer->defined() || buffer->size(0) < size) {
    buffer->reset();
    *buffer = at::empty({size}, at::TensorOptions(type).device(device_));
    slot->free.record(CurrentStream());  // which may still use the memory that it is made of
  }
  return buffer->narrow(0, 0, size);
}

void DeviceBatchSource::ReserveViews(const PackedImages& images, Slot* slot) const {
  int64_t bytes = 0;
  for (const at::Tensor& block : images.blocks) bytes += block.numel();
  // Images of other sizes come with each batch: a quarter more spares most of them new memory.
  if (!slot->packed.defined() || slot->packed.size(0) < bytes) bytes += bytes / 4;
  Reserve(bytes, at::kByte, &slot->packed, slot);
  int64_t values = 0;
  for (const std::vector<int64_t>& sizes : images.sizes) values += c10::multiply_integers(sizes);
  const at::Tensor floats = Reserve(values, at::kFloat, &slot->floats, slot);
  int64_t begin = 0;
  for (const std::vector<int64_t>& sizes : images.sizes) {
    const at::Tensor rows = floats.narrow(0, begin, c10::multiply_integers(sizes));
    slot->views.push_back(rows.view({sizes[0], sizes[2], sizes[3], sizes[1]}).permute({0, 3, 1, 2}));
    begin += rows.numel();
  }
}

absl::Status DeviceBatchSource::MakeViews(const PackedImages& images, Slot* slot) const {
  int64_t begin = 0;
  for (const at::Tensor& block : images.blocks) {
    slot->packed.narrow(0, begin, block.numel()).copy_(block, /*non_blocking=*/true);
    begin += block.numel();
  }
  ViewNormalization normalization;
  const PixelNormalization& given = images.normalization;
  for (size_t c = 0; c < 3; ++c) {
    normalization.mean[c] = static_cast<float>(given.mean[given.mean.size() == 1 ? 0 : c]);
    normalization.std[c] = static_cast<float>(given.std[given.std.size() == 1 ? 0 : c]);
  }
  return AugmentViews(images.plans, slot->packed, normalization, &slot->floats);
}

absl::Status DeviceBatchSource::HandOut(const Batch& batch, const Slot& slot) {
  slot.copied.block(CurrentStream());
  batch_ = Batch();  // what was normalised for it has the memory that is needed now
  std::vector<at::Tensor> tensors = slot.tensors;
  const size_t images = batch.views.size() + batch.named_inputs.size();
  if (!batch.normalizations.empty() && batch.normalizations.size() != images) {
    return absl::InvalidArgumentError(absl::StrCat("a batch has ", batch.normalizations.size(),
                                                   " normalizations, expected one for each of its ", images,
                                                   " views and inputs, or none"));
  }
  for (size_t i = 0; i < batch.normalizations.size(); ++i) {
    const PixelNormalization& normalization = batch.normalizations[i];
    SSL_ASSIGN_OR_RETURN(tensors[i], NormalizePixels(tensors[i], normalization.mean, normalization.std));
  }
  batch_ = WithTensors(batch, tensors);
  if (!slot.views.empty()) batch_.views = slot.views;
  return absl::OkStatus();
}

}  // namespace ssl
