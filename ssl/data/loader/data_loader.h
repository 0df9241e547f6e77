// SPDX-License-Identifier: Apache-2.0
//
// Batches from a pipeline, prepared ahead by threads of this process.
//
// Workers share the oldest unfinished batch in chunks of samples, so the next batch is ready as early as possible.
// Batches live in a ring of three buffers: one that the consumer holds and two ahead; of batches above 32 MiB there are
// two, for the second one ahead would cost more memory than all the rest. A full ring puts the workers to sleep, so
// they take no more processor time than the consumer needs. Contents and order do not depend on the number of threads.
// With 0 workers the calling thread does the work and one buffer is kept. For an accelerator (PrepareFor) batches are
// 8-bit where they can, or images that are not augmented yet (DataLoaderOptions::augments_on_device), and then three of
// any size.
//
//   Ring, by batch number:   held | being filled or ready | being filled or ready
//   Next() releases the held one, waits for the following one, and hands it out.
//
// StartEpoch, Next, PrepareFor and Following are for one thread. The destructor stops and joins the workers.
#ifndef SSL_DATA_LOADER_DATA_LOADER_H_
#define SSL_DATA_LOADER_DATA_LOADER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/read_ahead.h"
#include "ssl/core/target_columns.h"
#include "ssl/data/collator.h"
#include "ssl/data/dataset.h"
#include "ssl/data/dataset_source.h"
#include "ssl/data/loader/batch_buffer.h"
#include "ssl/data/loader/image_pack.h"
#include "ssl/data/loader/pipeline.h"
#include "ssl/data/replaced_images.h"
#include "ssl/data/sampler.h"

namespace ssl {

struct DataLoaderOptions {
  int64_t batch_size = 256;
  int image_channels = 3;                    // of the tensors: 1 or 3
  std::shared_ptr<const Collator> collator;  // null: any views
  // What the batches hold, by the names of the collator's inputs (BatchLayout).
  std::vector<std::string> input_keys = {CollatedInput().name};
  bool drop_last = false;  // leaves out a last batch that is not full
  // For an accelerator batches are images and plans, of which it makes the views itself. Needs 3 channels, one input
  // and a collator that mixes nothing.
  bool augments_on_device = false;
  // An accelerator will compute with the batches: `admit` is asked for what PrepareFor takes.
  bool for_accelerator = false;
  // Performance.
  int num_workers = 0;
};

// What a loader keeps in memory.
struct BatchMemory {
  int64_t batches = 0;  // in the ring
  int64_t samples = 0;  // in each
  int64_t bytes = 0;    // of the images of all of them
  // They are images that a device makes views of, each counted as large as the first: an estimate.
  bool is_estimate = false;
};

// OK, or why a loader may not take so much.
using AdmitBatchMemory = absl::FunctionRef<absl::Status(const BatchMemory&)>;

class DataLoader : public BatchSource,
                   public ReadAhead,
                   public DatasetSource,
                   public ReplacedImages,
                   public TargetColumns {
 public:
  // Reads one sample, to learn the shapes and to report a wrong pipeline now, asks `admit`, and allocates the ring;
  // that for an accelerator PrepareFor does.
  static absl::StatusOr<std::unique_ptr<DataLoader>> Create(
      Pipeline pipeline, std::unique_ptr<Sampler> sampler, const DataLoaderOptions& options,
      AdmitBatchMemory admit = [](const BatchMemory&) { return absl::OkStatus(); });
  ~DataLoader() override;

  int64_t batches_per_epoch() const override;
  int64_t dataset_size() const override { return pipeline_.dataset().size(); }
  bool has_labels() const override { return has_labels_; }
  absl::StatusOr<std::vector<int64_t>> Classes() const override { return pipeline_.Classes(); }
  std::vector<std::string> ClassNames() const override { return pipeline_.ClassNames(); }
  std::string SampleIdentity(int64_t index) const override { return pipeline_.SampleIdentity(index); }
  int64_t target_columns() const override { return target_columns_; }
  const Dataset& dataset() const override { return pipeline_.dataset(); }
  const std::map<int64_t, ReadFault>& replaced_images() const override { return replaced_; }
  std::string ImageName(int64_t index) const override { return pipeline_.dataset().SampleName(index); }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override;
  // After an error the source returns that error until the next StartEpoch.
  absl::StatusOr<const Batch*> Next() override;
  absl::Status PrepareFor(const c10::Device& device) override;
  const Batch* Following() override;
  const PackedImages* ImagesOfNext() const override;
  const PackedImages* ImagesOfFollowing() const override;

 private:
  // A batch in the ring. Guarded by mutex_, except buffer, images and faults, whose rows belong to who writes them.
  struct Slot {
    explicit Slot(const BatchLayout& layout)
        : buffer(layout),
          images(layout.plans_views ? std::make_unique<ImagePack>(layout) : nullptr),
          faults(layout.batch_size) {}
    BatchBuffer buffer;
    std::unique_ptr<ImagePack> images;  // null: the buffer has the views
    std::vector<ReadFault> faults;      // of each sample
    int64_t unfinished = 0;             // samples not yet written
    bool ready = false;                 // the collator has seen them, too
    int64_t rows = 0;                   // of the batch, when it is ready
    absl::Status error;                 // of the first sample that failed, by position
    int64_t error_position = 0;
  };
  // Samples [first, first + count) of a batch.
  struct Chunk {
    int64_t batch = 0;
    int64_t first = 0;
    int64_t count = 0;
  };

  DataLoader(Pipeline pipeline, std::unique_ptr<Sampler> sampler, const DataLoaderOptions& options);
  absl::Status Initialize(AdmitBatchMemory admit);
  // From a first sample.
  absl::StatusOr<BatchLayout> FindLayout();
  // InvalidArgument when a device cannot make such views.
  absl::Status CheckPlans(const BatchLayout& layout);
  // That of batches for `device`.
  BatchLayout LayoutOn(const c10::Device& device) const;
  absl::Status AllocateRing();

  int64_t SamplesIn(int64_t batch) const;
  Slot& SlotOf(int64_t batch) { return *ring_[batch % static_cast<int64_t>(ring_.size())]; }
  // These expect mutex_ to be held.
  bool HasWork() const;
  bool IsReady(int64_t batch) const;
  // Returns when no worker is busy, and none will be until StartEpoch.
  void DropWork(std::unique_lock<std::mutex>* lock);
  Chunk TakeChunk();
  // The caller that finishes the last chunk of a batch collates it, without the mutex.
  void FinishChunk(const Chunk& chunk, int64_t error_position, absl::Status status, std::unique_lock<std::mutex>* lock);
  void CollateBatch(int64_t batch, std::unique_lock<std::mutex>* lock);
  absl::StatusOr<const Batch*> HandOut();
  void NoteReplaced(int64_t batch);
  const PackedImages* ImagesOf(int64_t batch) const;

  // Writes the samples of `chunk`; on error *position is that of the failed sample in the batch.
  absl::Status FillChunk(const Chunk& chunk, PipelineScratch* scratch, int64_t* position);
  absl::Status FillRow(int64_t index, int64_t row, PipelineScratch* scratch, Slot* slot);
  void Work();

  const Pipeline pipeline_;
  const std::unique_ptr<Sampler> sampler_;
  const DataLoaderOptions options_;
  PipelineScratch scratch_;  // of the calling thread
  std::map<int64_t, ReadFault> replaced_;

  // Changed only while no worker is busy.
  BatchLayout layout_;
  std::vector<std::unique_ptr<Slot>> ring_;
  std::vector<int64_t> order_;
  int64_t epoch_ = -1;
  int64_t num_batches_ = 0;
  bool has_labels_ = false;
  int64_t target_columns_ = 0;
  std::atomic<bool> cancel_{false};

  std::mutex mutex_;
  std::condition_variable work_available_;
  std::condition_variable progress_;
  // Guarded by mutex_.
  bool stopping_ = false;
  int64_t busy_workers_ = 0;
  Chunk next_chunk_;          // the next piece of work
  int64_t next_batch_ = 0;    // that Next hands out
  int64_t oldest_batch_ = 0;  // that still needs its slot
  absl::Status error_;

  std::vector<std::thread> workers_;
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_DATA_LOADER_H_
