// SPDX-License-Identifier: Apache-2.0
//
// What sources of batches take of the host's memory: told at the start, and refused where it is more than is free,
// since the kernel would give it until it is used. Ranks of one host, as processes or within one, share it.
#ifndef SSL_DATA_LOADER_SOURCE_MEMORY_H_
#define SSL_DATA_LOADER_SOURCE_MEMORY_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/data_options.h"
#include "ssl/data/loader/data_loader.h"

namespace ssl {

// Tells what the images take that `split`, which has a CACHE, keeps. node: the split in the tree. InvalidArgument: the
// caches of DATA.TRAIN and DATA.TEST are together larger than the memory that is free.
absl::Status AdmitCache(const DataSplitOptions& split, const ConfigNode& node, const BuildContext& context);

// Tells what the batches of a phase take, on rank 0. node: the split in the tree.
// InvalidArgument: these batches and the caches of DATA.TRAIN and DATA.TEST are together larger than the memory that is
// free. What is an estimate is not compared: the largest image is not known before all are read.
absl::Status AdmitBatches(const BatchMemory& batches, const ConfigNode& node, const BuildContext& context);

// The same without a word, and without caches: an evaluation keeps none.
absl::Status AdmitEvaluationBatches(const BatchMemory& batches, const ConfigNode& node, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_LOADER_SOURCE_MEMORY_H_
