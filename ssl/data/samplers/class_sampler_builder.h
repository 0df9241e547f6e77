// SPDX-License-Identifier: Apache-2.0
//
// The samplers that choose by class, as STRATIFIED_SAMPLER and POWER_LAW_SAMPLER of a split ask for them.
#ifndef SSL_DATA_SAMPLERS_CLASS_SAMPLER_BUILDER_H_
#define SSL_DATA_SAMPLERS_CLASS_SAMPLER_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ssl/data/data_options.h"
#include "ssl/data/dataset.h"
#include "ssl/data/sampler.h"

namespace ssl {

// Where a rank is, and what its draws begin with.
struct RankSeed {
  int64_t world_size = 1;
  int64_t rank = 0;
  int64_t seed = 0;
};

// Null when the split asks for neither. place: how messages call the split, "run.yaml:7: config.DATA.TRAIN".
// InvalidArgument when the numbers do not fit the classes of `dataset`, or a sample has none.
absl::StatusOr<std::unique_ptr<Sampler>> BuildClassSampler(const DataSplitOptions& split, const Dataset& dataset,
                                                           const RankSeed& rank_seed, const std::string& place);

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_CLASS_SAMPLER_BUILDER_H_
