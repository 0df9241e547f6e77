// SPDX-License-Identifier: Apache-2.0
//
// The data of an evaluation: DATA.TRAIN or DATA.TEST, each sample once, in the order of the data set.
//
// Both splits are read with DATA.TEST's transforms and batch size, because those of a training run are augmentations;
// a configuration without DATA.TEST.TRANSFORMS has each split's own. Labels are those of the data, whatever LABEL_TYPE
// says: a self-supervised run may have asked for the samples' indices.
#ifndef SSL_DATA_LOADER_EVALUATION_SOURCE_H_
#define SSL_DATA_LOADER_EVALUATION_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/registries.h"

namespace ssl {

// split: "TRAIN" or "TEST". The section whose TRANSFORMS it is read with.
const ConfigNode& EvaluationTransforms(const ConfigNode& config, const std::string& split);

// most_samples: a larger split is represented by this many, drawn once by DATA_LIMIT_SAMPLING.SEED; -1: all.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeSplitEvaluationSource(const std::string& split, int64_t most_samples,
                                                                       const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_LOADER_EVALUATION_SOURCE_H_
