// SPDX-License-Identifier: Apache-2.0
//
// From the DATA section of a configuration to batches: data set -> limit -> transforms -> sampler -> loader.
// Errors name the key with file:line.
#ifndef SSL_DATA_LOADER_DATA_SOURCE_BUILDER_H_
#define SSL_DATA_LOADER_DATA_SOURCE_BUILDER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"

namespace ssl {

// Sources of phases keep images in memory as CACHE says; an evaluation, which reads each once, does not.

// BASE_DATASET generic_ssl: a test source for the node DATA.TEST of context.config, a training source for any other.
absl::StatusOr<std::unique_ptr<BatchSource>> MakePhaseSource(const ConfigNode& data_split, const BuildContext& context);

// For training phases: shuffled anew each epoch, spread over the ranks. A batch larger than a rank's share is an error.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeTrainingSource(const ConfigNode& data_split,
                                                                const BuildContext& context);

// For test phases: in the data's own order, in batches of any size, the last one smaller unless DROP_LAST. In a world
// of several ranks some ranks repeat a first sample at the end, so that all see equally many; Batch::indices tells.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeTestSource(const ConfigNode& data_split, const BuildContext& context);

// For engines that look at every sample once (features, kNN): the data of `data_split` (such as DATA.TRAIN) in its
// own order, in batches as `transforms_split` (such as DATA.TEST) describes them: TRANSFORMS, COLLATE_FUNCTION,
// IMAGE_CHANNELS and BATCHSIZE_PER_REPLICA are its. Nothing is shuffled or dropped; otherwise as for test phases.
// most_samples: larger data are represented by this many, drawn once by DATA_LIMIT_SAMPLING.SEED; -1: all.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeEvaluationSource(const ConfigNode& data_split,
                                                                  const ConfigNode& transforms_split,
                                                                  const BuildContext& context,
                                                                  int64_t most_samples = -1);

}  // namespace ssl

#endif  // SSL_DATA_LOADER_DATA_SOURCE_BUILDER_H_
