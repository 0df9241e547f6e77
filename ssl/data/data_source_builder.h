// SPDX-License-Identifier: Apache-2.0
//
// From the DATA section of a configuration to batches: data set -> limit -> transforms -> sampler -> loader.
// Errors name the key with file:line.
#ifndef SSL_DATA_DATA_SOURCE_BUILDER_H_
#define SSL_DATA_DATA_SOURCE_BUILDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"

namespace ssl {

// For training (BASE_DATASET generic_ssl): shuffled anew each epoch, spread over the ranks.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeTrainingSource(const ConfigNode& data_split,
                                                                const BuildContext& context);

// For engines that look at every sample once (features, kNN): the data of `data_split` (such as DATA.TRAIN) in its
// own order, in batches as `transforms_split` (such as DATA.TEST) describes them: TRANSFORMS, COLLATE_FUNCTION,
// IMAGE_CHANNELS and BATCHSIZE_PER_REPLICA are its. Nothing is shuffled or dropped; the last batch may be smaller.
// In a world of several ranks some ranks repeat a first sample at the end, so that all see equally many;
// Batch::indices tells.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeEvaluationSource(const ConfigNode& data_split,
                                                                  const ConfigNode& transforms_split,
                                                                  const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATA_SOURCE_BUILDER_H_
