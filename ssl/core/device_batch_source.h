// SPDX-License-Identifier: Apache-2.0
//
// The batches of a source on an accelerator, where each is copied while the step of the one before computes.
//
// The batches of a source that reads ahead (read_ahead.h) go this way; stream "side" is the source's own:
//
//   host    Next(n)                                    Next(n+1)
//   side      wait for step n-1 . copy n+1             wait for step n . copy n+2
//   main    wait for copy n . normalise . step n       wait for copy n+1 . normalise . step n+1
//
// Of other sources Next alone asks for a batch, which is copied then: they may draw it from the generators, which are
// seeded before. Two sets of buffers on the device take turns, so that nothing is allocated there from the third batch
// on; what is normalised gets the memory of the one before. Views that the device makes itself (packed_images.h) are
// made on the stream beside, behind the copy of their images, into memory of the set; memory for the work follows the
// sizes of the images, as the set does where one is larger than all before. The memory of the host goes back
// to the source, by its Next or StartEpoch, when the event behind the copy has come: of a batch that a step has been
// queued for since, so that the host waits only where it is two steps ahead of the device.
//
// For one thread, whose current device is `device`. Calls may throw LibTorch exceptions.
#ifndef SSL_CORE_DEVICE_BATCH_SOURCE_H_
#define SSL_CORE_DEVICE_BATCH_SOURCE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/packed_images.h"
#include "ssl/core/perf_stats.h"
#include "ssl/core/read_ahead.h"

namespace ssl {

class DeviceBatchSource : public BatchSource {
 public:
  // Whether targets on the host fit: on the device, nobody could look at them without waiting.
  using TargetCheck = std::function<absl::Status(const at::Tensor& targets)>;

  // source: outlives this one, through which alone it is read from now on. device: not the CPU.
  DeviceBatchSource(BatchSource& source, const c10::Device& device, TargetCheck check);
  ~DeviceBatchSource() override;
  DeviceBatchSource(const DeviceBatchSource&) = delete;
  DeviceBatchSource& operator=(const DeviceBatchSource&) = delete;

  int64_t batches_per_epoch() const override { return source_.batches_per_epoch(); }
  int64_t dataset_size() const override { return source_.dataset_size(); }
  bool has_labels() const override { return source_.has_labels(); }
  absl::StatusOr<std::vector<int64_t>> Classes() const override { return source_.Classes(); }
  std::vector<std::string> ClassNames() const override { return source_.ClassNames(); }
  std::string SampleIdentity(int64_t index) const override { return source_.SampleIdentity(index); }

  // From here on Next adds its times there: those of the source are kReadSample, all others kWaitForDevice. `stats`
  // outlives the calls; null: it adds none.
  void Measure(PerfStats* stats) { perf_stats_ = stats; }

  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override;
  // Views, inputs and targets lie on the device, indices on the host. Views and inputs that are 8-bit pixels are
  // normalised. Errors are those of the source and of the check, with the batch that they are about.
  absl::StatusOr<const Batch*> Next() override;

 private:
  absl::StatusOr<const Batch*> NextOfSource();
  absl::StatusOr<const Batch*> NextOnDevice();

  // Where a batch is copied to.
  struct Slot {
    explicit Slot(c10::DeviceType type) : copied(type), free(type) {}
    std::vector<at::Tensor> buffers;
    // Rows of the buffers; where a host's source has its tensors there already, these.
    std::vector<at::Tensor> tensors;
    // Of packed images: their bytes, and the floats of all views, of which each tensor of `views` is a part.
    at::Tensor packed;
    at::Tensor floats;
    std::vector<at::Tensor> views;  // empty: the batch has its own
    c10::Event copied;              // behind the last copy into it, and what was made of it
    c10::Event free;                // behind the last use of its buffers
    bool is_following = false;      // it holds what Next will hand out
  };

  // Returns when the host's memory that the last copies read is free.
  void WaitForCopies();
  // images: null, or what the views are made of.
  absl::Status StartCopy(const Batch& batch, const PackedImages* images, Slot* slot);
  // A buffer with room for `size` values in its first dimension, of which it has `buffer` or a new one.
  at::Tensor Reserve(int64_t size, at::ScalarType type, at::Tensor* buffer, Slot* slot) const;
  void ReserveViews(const PackedImages& images, Slot* slot) const;
  // On the current stream.
  absl::Status MakeViews(const PackedImages& images, Slot* slot) const;
  void StartFollowing();
  // The batch whose copy into `slot` was started.
  absl::Status HandOut(const Batch& batch, const Slot& slot);
  c10::Stream CurrentStream() const;

  BatchSource& source_;
  ReadAhead* const ahead_;  // source_, if it reads ahead
  const c10::Device device_;
  const TargetCheck check_;
  const c10::Stream side_;
  std::array<Slot, 2> slots_;
  int next_ = 0;  // slot of the batch that Next hands out
  Batch batch_;   // handed out
  PerfStats* perf_stats_ = nullptr;
};

}  // namespace ssl

#endif  // SSL_CORE_DEVICE_BATCH_SOURCE_H_
