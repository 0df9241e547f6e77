// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/data_loader.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/start_thread.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/pinned_memory.h"

namespace ssl {
namespace {

constexpr int64_t kRingSize = 3;
constexpr int64_t kRingSizeOfLarge = 2;
constexpr int64_t kLargeBatchBytes = int64_t{32} << 20;
// Small enough that several workers share a batch, large enough that the lock is rarely taken. A chunk is a block of
// packed images.
constexpr int64_t kChunkSize = ImagePack::kBlockRows;

int64_t BatchBytes(const BatchLayout& layout) {
  return layout.plans_views ? ImagePack::BytesOfImages(layout) : BytesOfImages(layout);
}

// num_batches: of an epoch. Three large batches of pixels are still less than two of floats.
int64_t RingSize(int num_workers, const BatchLayout& layout, int64_t num_batches) {
  if (num_workers == 0) return 1;
  const bool is_large = BatchBytes(layout) > kLargeBatchBytes && !layout.keeps_pixels && !layout.plans_views;
  return std::min(is_large ? kRingSizeOfLarge : kRingSize, num_batches + 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataLoader>> DataLoader::Create(Pipeline pipeline, std::unique_ptr<Sampler> sampler,
                                                               const DataLoaderOptions& options,
                                                               AdmitBatchMemory admit) {
  auto loader = absl::WrapUnique(new DataLoader(std::move(pipeline), std::move(sampler), options));
  SSL_RETURN_IF_ERROR(GuardTorch("data loader", [&] { return loader->Initialize(admit); }));
  return loader;
}

DataLoader::DataLoader(Pipeline pipeline, std::unique_ptr<Sampler> sampler, const DataLoaderOptions& options)
    : pipeline_(std::move(pipeline)), sampler_(std::move(sampler)), options_(options) {}

absl::StatusOr<BatchLayout> DataLoader::FindLayout() {
  const int64_t samples = sampler_->size();
  BatchLayout layout;
  layout.batch_size = std::min(options_.batch_size, samples);
  layout.channels = options_.image_channels;
  layout.has_labels = pipeline_.has_labels();
  layout.input_keys = options_.input_keys;
  SSL_RETURN_IF_ERROR(pipeline_.Read(/*epoch=*/0, /*index=*/0, &scratch_));
  if (options_.collator != nullptr) {
    SSL_RETURN_IF_ERROR(options_.collator->Check(scratch_.sample));
    const int64_t tail = options_.drop_last ? 0 : samples % options_.batch_size;
    for (const int64_t rows : {layout.batch_size, tail}) {
      if (rows > 0) SSL_RETURN_IF_ERROR(options_.collator->CheckRows(rows));
    }
    layout.targets = options_.collator->Targets(scratch_.sample);
    layout.inputs = options_.collator->inputs();
  }
  absl::StatusOr<BatchLayout> fitting = LayoutFor(scratch_.sample, layout);
  if (!fitting.ok()) return Annotate(fitting.status(), pipeline_.dataset().SampleName(0));
  layout = *std::move(fitting);
  if (!options_.augments_on_device) return layout;
  SSL_RETURN_IF_ERROR(CheckPlans(layout));
  layout.image_bytes = scratch_.sample.view(0).image.size_bytes();
  return layout;
}

absl::Status DataLoader::CheckPlans(const BatchLayout& layout) {
  SSL_RETURN_IF_ERROR(pipeline_.CheckPlans(&scratch_));
  const auto is_first = [&](const PixelTable* table) {
    return table->mean == layout.tables[0]->mean && table->std == layout.tables[0]->std;
  };
  const bool are_alike = std::all_of(layout.tables.begin(), layout.tables.end(), is_first);
  if (are_alike && pipeline_.tables_say_all() && CanKeepPixels(layout)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "floats of views are not made by ToTensor and one Normalize for all, expected that where a device makes the "
      "views");
}

absl::Status DataLoader::Initialize(AdmitBatchMemory admit) {
  if (options_.batch_size < 1) return absl::InvalidArgumentError("batch size is below 1");
  const int64_t samples = sampler_->size();
  num_batches_ =
      options_.drop_last ? samples / options_.batch_size : (samples + options_.batch_size - 1) / options_.batch_size;
  if (num_batches_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch size is ", options_.batch_size, ", but a rank has only ",
                                                   samples, " samples, so that an epoch has no batch"));
  }

  SSL_ASSIGN_OR_RETURN(layout_, FindLayout());
  has_labels_ = layout_.has_labels && layout_.targets.kind != TargetLayout::Kind::kNone;
  target_columns_ = has_labels_ ? layout_.targets.columns : 0;
  if (options_.num_workers > 0) scratch_ = PipelineScratch();  // each has its own

  const BatchLayout admitted = options_.for_accelerator ? LayoutOn(c10::kCUDA) : layout_;
  const int64_t ring_size = RingSize(options_.num_workers, admitted, num_batches_);
  SSL_RETURN_IF_ERROR(admit({ring_size, admitted.batch_size, ring_size * BatchBytes(admitted), admitted.plans_views}));
  if (!options_.for_accelerator) SSL_RETURN_IF_ERROR(AllocateRing());
  next_chunk_.batch = num_batches_;  // no work before StartEpoch
  next_batch_ = oldest_batch_ = num_batches_;
  error_ = absl::FailedPreconditionError("data loader: Next was called before StartEpoch");
  for (int i = 0; i < options_.num_workers; ++i) {
    std::thread worker;
    SSL_RETURN_IF_ERROR(StartThread(
        absl::StrCat("worker ", i + 1, " of ", options_.num_workers), [this] { Work(); }, &worker));
    workers_.push_back(std::move(worker));
  }
  return absl::OkStatus();
}

DataLoader::~DataLoader() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    cancel_ = true;
  }
  work_available_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  ring_.clear();
  FinishAndReleasePinned(layout_.device);
}

BatchLayout DataLoader::LayoutOn(const c10::Device& device) const {
  BatchLayout layout = layout_;
  layout.device = device;
  const bool mixes_floats = options_.collator != nullptr && options_.collator->mixes_samples();
  layout.plans_views = !device.is_cpu() && options_.augments_on_device;
  layout.keeps_pixels =
      !device.is_cpu() && !layout.plans_views && !mixes_floats && pipeline_.tables_say_all() && CanKeepPixels(layout_);
  return layout;
}

absl::Status DataLoader::AllocateRing() {
  const int64_t ring_size = RingSize(options_.num_workers, layout_, num_batches_);
  const std::string what = absl::StrCat("memory for batches: ", ring_size, " of ", layout_.batch_size, " samples, ",
                                        ring_size * BatchBytes(layout_), " bytes");
  return GuardTorch(what, [&] {
    std::vector<std::unique_ptr<Slot>> ring;
    for (int64_t i = 0; i < ring_size; ++i) ring.push_back(std::make_unique<Slot>(layout_));
    ring_ = std::move(ring);
    return absl::OkStatus();
  });
}

int64_t DataLoader::batches_per_epoch() const { return num_batches_; }

int64_t DataLoader::SamplesIn(int64_t batch) const {
  const int64_t left = static_cast<int64_t>(order_.size()) - batch * options_.batch_size;
  return std::min(left, options_.batch_size);
}

absl::Status DataLoader::StartEpoch(int64_t epoch, int64_t first_batch) {
  if (epoch < 0 || first_batch < 0 || first_batch > num_batches_) {
    return absl::InvalidArgumentError(absl::StrCat("epoch ", epoch, ", batch ", first_batch,
                                                   " does not exist: an epoch has ", num_batches_, " batches"));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  DropWork(&lock);
  error_ = absl::FailedPreconditionError("data loader: the last StartEpoch failed");
  if (ring_.empty()) SSL_RETURN_IF_ERROR(AllocateRing());  // PrepareFor was not called or found no memory
  SSL_RETURN_IF_ERROR(GuardTorch("sample order", [&] {
    order_ = sampler_->Indices(epoch);
    return absl::OkStatus();
  }));
  epoch_ = epoch;
  for (const std::unique_ptr<Slot>& slot : ring_) {
    slot->error = absl::OkStatus();
    slot->unfinished = 0;
    slot->ready = false;
  }
  next_chunk_ = {first_batch, 0, 0};
  next_batch_ = oldest_batch_ = first_batch;
  error_ = absl::OkStatus();
  lock.unlock();
  work_available_.notify_all();
  return absl::OkStatus();
}

void DataLoader::DropWork(std::unique_lock<std::mutex>* lock) {
  next_chunk_.batch = num_batches_;
  cancel_ = true;
  progress_.wait(*lock, [this] { return busy_workers_ == 0; });
  cancel_ = false;
}

absl::Status DataLoader::PrepareFor(const c10::Device& device) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (layout_.device == device) return absl::OkStatus();
  DropWork(&lock);
  error_ = absl::FailedPreconditionError("data loader: Next was called between PrepareFor and StartEpoch");
  layout_ = LayoutOn(device);
  ring_.clear();
  return AllocateRing();
}

bool DataLoader::HasWork() const {
  return next_chunk_.batch < num_batches_ && next_chunk_.batch < oldest_batch_ + static_cast<int64_t>(ring_.size());
}

DataLoader::Chunk DataLoader::TakeChunk() {
  const int64_t samples = SamplesIn(next_chunk_.batch);
  if (next_chunk_.first == 0) {
    Slot& slot = SlotOf(next_chunk_.batch);
    slot.unfinished = samples;
    slot.ready = false;
    slot.error = absl::OkStatus();
  }
  Chunk chunk = next_chunk_;
  chunk.count = std::min(kChunkSize, samples - chunk.first);
  next_chunk_.first += chunk.count;
  if (next_chunk_.first == samples) next_chunk_ = {chunk.batch + 1, 0, 0};
  return chunk;
}

absl::Status DataLoader::FillChunk(const Chunk& chunk, PipelineScratch* scratch, int64_t* position) {
  Slot& slot = SlotOf(chunk.batch);
  return GuardTorch("data loader", [&] {
    for (int64_t row = chunk.first; row < chunk.first + chunk.count && !cancel_; ++row) {
      *position = row;
      SSL_RETURN_IF_ERROR(FillRow(order_[chunk.batch * options_.batch_size + row], row, scratch, &slot));
    }
    return absl::OkStatus();
  });
}

absl::Status DataLoader::FillRow(int64_t index, int64_t row, PipelineScratch* scratch, Slot* slot) {
  const bool plans_views = slot->images != nullptr;
  SSL_RETURN_IF_ERROR(plans_views ? pipeline_.Plan(epoch_, index, scratch) : pipeline_.Read(epoch_, index, scratch));
  slot->faults[row] = scratch->sample.fault;
  if (plans_views) SSL_RETURN_IF_ERROR(slot->images->Write(scratch->sample.view(0).image, scratch->plans, row));
  const absl::Status written = slot->buffer.Write(scratch->sample, row);
  return written.ok() ? written : Annotate(written, pipeline_.dataset().SampleName(index));
}

void DataLoader::FinishChunk(const Chunk& chunk, int64_t error_position, absl::Status status,
                             std::unique_lock<std::mutex>* lock) {
  Slot& slot = SlotOf(chunk.batch);
  slot.unfinished -= chunk.count;
  // The first by position, so that the message does not depend on which thread was faster.
  if (!status.ok() && (slot.error.ok() || error_position < slot.error_position)) {
    slot.error = std::move(status);
    slot.error_position = error_position;
  }
  if (slot.unfinished == 0) CollateBatch(chunk.batch, lock);
}

void DataLoader::CollateBatch(int64_t batch, std::unique_lock<std::mutex>* lock) {
  Slot& slot = SlotOf(batch);
  slot.rows = SamplesIn(batch);
  // After a cancelled chunk there are rows that nobody wrote; nobody will ask for the batch either.
  if (slot.error.ok() && !cancel_) {
    const CollateContext context{pipeline_.seed(), static_cast<uint64_t>(epoch_)};
    lock->unlock();
    absl::Status status = GuardTorch("collate function", [&]() -> absl::Status {
      if (slot.images != nullptr) slot.images->Finish(slot.rows);
      if (options_.collator == nullptr) return absl::OkStatus();
      SSL_ASSIGN_OR_RETURN(slot.rows, slot.buffer.Collate(*options_.collator, context, slot.rows));
      return absl::OkStatus();
    });
    lock->lock();
    slot.error = std::move(status);
  }
  slot.ready = true;
}

void DataLoader::Work() {
  PipelineScratch scratch;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_available_.wait(lock, [this] { return stopping_ || HasWork(); });
    if (stopping_) return;
    const Chunk chunk = TakeChunk();
    ++busy_workers_;
    lock.unlock();
    int64_t position = chunk.first;
    absl::Status status = FillChunk(chunk, &scratch, &position);
    lock.lock();
    FinishChunk(chunk, position, std::move(status), &lock);
    --busy_workers_;
    // One thread at most waits: in Next for a full batch, or in StartEpoch until all are idle.
    if (SlotOf(chunk.batch).ready || busy_workers_ == 0) progress_.notify_one();
  }
}

void DataLoader::NoteReplaced(int64_t batch) {
  const Slot& slot = SlotOf(batch);
  for (int64_t row = 0; row < SamplesIn(batch); ++row) {
    if (slot.faults[row] == ReadFault::kNone) continue;
    replaced_[order_[batch * options_.batch_size + row]] = slot.faults[row];
  }
}

absl::StatusOr<const Batch*> DataLoader::HandOut() {
  Slot& slot = SlotOf(next_batch_);
  if (!slot.error.ok()) {
    error_ = slot.error;
    next_chunk_.batch = num_batches_;  // no more work
    return error_;
  }
  NoteReplaced(next_batch_++);
  return &slot.buffer.Finish(slot.rows);
}

bool DataLoader::IsReady(int64_t batch) const {
  return next_chunk_.batch > batch && ring_[batch % static_cast<int64_t>(ring_.size())]->ready;
}

const Batch* DataLoader::Following() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!error_.ok() || workers_.empty() || next_batch_ == num_batches_ || !IsReady(next_batch_)) return nullptr;
  Slot& slot = SlotOf(next_batch_);
  return slot.error.ok() ? &slot.buffer.Finish(slot.rows) : nullptr;
}

const PackedImages* DataLoader::ImagesOf(int64_t batch) const {
  const Slot& slot = *ring_[batch % static_cast<int64_t>(ring_.size())];
  return slot.images != nullptr ? &slot.images->images() : nullptr;
}

const PackedImages* DataLoader::ImagesOfNext() const { return ImagesOf(next_batch_ - 1); }

const PackedImages* DataLoader::ImagesOfFollowing() const { return ImagesOf(next_batch_); }

absl::StatusOr<const Batch*> DataLoader::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!error_.ok()) return error_;
  oldest_batch_ = next_batch_;  // the batch handed out before is released
  if (next_batch_ == num_batches_) return nullptr;
  if (workers_.empty()) {
    while (next_chunk_.batch == next_batch_) {
      const Chunk chunk = TakeChunk();
      int64_t position = chunk.first;
      absl::Status status = FillChunk(chunk, &scratch_, &position);
      FinishChunk(chunk, position, std::move(status), &lock);
    }
  } else {
    work_available_.notify_all();
    progress_.wait(lock, [this] { return IsReady(next_batch_); });
  }
  return HandOut();
}

}  // namespace ssl
