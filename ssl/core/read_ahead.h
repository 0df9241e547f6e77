// SPDX-License-Identifier: Apache-2.0
//
// A BatchSource that prepares batches ahead, by threads of its own and without LibTorch's generators, has this
// interface as well: for who copies a batch to an accelerator while a step computes with the one before
// (device_batch_source.h). Used by the thread that calls Next.
#ifndef SSL_CORE_READ_AHEAD_H_
#define SSL_CORE_READ_AHEAD_H_

#include <c10/core/Device.h>

#include "absl/status/status.h"

namespace ssl {

struct Batch;
struct PackedImages;

class ReadAhead {
 public:
  virtual ~ReadAhead() = default;

  // From here on batches are for `device`, an accelerator: in memory that is pinned for it (pinned_memory.h), and 8-bit
  // where nothing but a normalisation is left to do (Batch::normalizations). What was in flight is dropped: StartEpoch
  // is to follow. Does nothing when they are that already.
  virtual absl::Status PrepareFor(const c10::Device& device) = 0;

  // The batch that the next call of Next will hand out, valid as long as that one's, if it is ready. Null when it is
  // not, when Next will return an error, and at the end of the epoch. Does not wait.
  virtual const Batch* Following() = 0;

  // What the views of these batches are made of, which then have none: of the one that Next has handed out last, and of
  // the one that Following has returned. Null: they have their views. Not before PrepareFor.
  virtual const PackedImages* ImagesOfNext() const { return nullptr; }
  virtual const PackedImages* ImagesOfFollowing() const { return nullptr; }
};

}  // namespace ssl

#endif  // SSL_CORE_READ_AHEAD_H_
