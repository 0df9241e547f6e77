// SPDX-License-Identifier: Apache-2.0
//
// The data of an engine that evaluates: DATA.TRAIN and DATA.TEST, each sample once, in the order of the data set.
//
// Both splits are read with DATA.TEST's transforms and batch size, because those of a training run are augmentations;
// a configuration without DATA.TEST.TRANSFORMS has each split's own. Labels are those of the data, whatever LABEL_TYPE
// says: a self-supervised run may have asked for the samples' indices.
#ifndef SSL_ENGINES_EVALUATION_DATA_H_
#define SSL_ENGINES_EVALUATION_DATA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/engines/engine.h"

namespace ssl {

// Those of "TRAIN", "TEST" that name DATA_SOURCES.
std::vector<std::string> ConfiguredSplits(const ConfigNode& config);

// The section whose TRANSFORMS `split` is read with.
const ConfigNode& EvaluationTransforms(const ConfigNode& config, const std::string& split);

absl::StatusOr<std::unique_ptr<BatchSource>> MakeSplitSource(const std::string& split, EngineContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_EVALUATION_DATA_H_
