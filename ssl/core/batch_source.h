// SPDX-License-Identifier: Apache-2.0
//
// Where a phase's batches come from: the data loader, or a host program's own tensors.
//
// The order of batches depends on the epoch number alone, so a source has no state to save: a resumed run starts
// the interrupted epoch at the batch where it stopped.
#ifndef SSL_CORE_BATCH_SOURCE_H_
#define SSL_CORE_BATCH_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ssl {

struct Batch;

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Batches per epoch on this rank; at least 1.
  virtual int64_t batches_per_epoch() const = 0;
  // Samples in the whole data set, over all ranks.
  virtual int64_t dataset_size() const = 0;

  // Whether its batches have targets. A source that says nothing has them; what needs them asks before it begins.
  virtual bool has_labels() const { return true; }

  // The class labels that occur in the data set, in ascending order, without reading pictures. Unimplemented when the
  // source cannot tell.
  virtual absl::StatusOr<std::vector<int64_t>> Classes() const;

  // The names of the classes, by label; empty where classes are numbers only.
  virtual std::vector<std::string> ClassNames() const { return {}; }

  // What tells sample `index` of the data set, in [0, dataset_size()), from others, without reading it: its file below
  // the data set's folder, and its class. Equal on ranks that see the same data, wherever these lie. "" when the source
  // cannot tell: of the first and the last sample, and no other is asked for.
  virtual std::string SampleIdentity(int64_t index) const { return ""; }

  // Starts epoch `epoch` (0, 1, ...) at batch `first_batch`. What was in flight is dropped.
  virtual absl::Status StartEpoch(int64_t epoch, int64_t first_batch) = 0;

  // The next batch, owned by the source and valid until the next call; nullptr at the end of the epoch.
  virtual absl::StatusOr<const Batch*> Next() = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_BATCH_SOURCE_H_
