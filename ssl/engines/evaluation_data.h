// SPDX-License-Identifier: Apache-2.0
//
// The data of an engine that evaluates: DATA.TRAIN and DATA.TEST as ssl/data/loader/evaluation_source.h reads them.
#ifndef SSL_ENGINES_EVALUATION_DATA_H_
#define SSL_ENGINES_EVALUATION_DATA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/dataset.h"
#include "ssl/engines/engine.h"

namespace ssl {

// Those of "TRAIN", "TEST" that name DATA_SOURCES. InvalidArgument when neither does.
absl::StatusOr<std::vector<std::string>> ConfiguredSplits(const ConfigNode& config);

// Aborted when another rank cannot open its own, and InvalidArgument when that is another data set. Collective.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeSplitSource(const std::string& split, EngineContext& context);

// The data set behind a source of MakeSplitSource or of the data loader, as long as the source lives; null behind a
// source of a host's own kind.
const Dataset* DatasetBehind(const BatchSource& source);

// The images of "TRAIN" or "TEST" as they are, without transforms. Cancelled when a stop was requested before.
absl::StatusOr<std::unique_ptr<Dataset>> OpenSplitDataset(const std::string& split, EngineContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_EVALUATION_DATA_H_
