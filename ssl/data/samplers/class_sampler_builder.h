// SPDX-License-Identifier: Apache-2.0
//
// The samplers that choose by class, as STRATIFIED_SAMPLER and POWER_LAW_SAMPLER of a split ask for them.
#ifndef SSL_DATA_SAMPLERS_CLASS_SAMPLER_BUILDER_H_
#define SSL_DATA_SAMPLERS_CLASS_SAMPLER_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// How messages call a key of the split: "run.yaml:7: config.DATA.TRAIN.POWER_LAW_SAMPLER.ENABLED".
using PlaceOfKey = absl::FunctionRef<std::string(absl::string_view key)>;

// Null when the split asks for neither. InvalidArgument when the numbers do not fit the classes of `dataset`, or a
// sample has none.
absl::StatusOr<std::unique_ptr<Sampler>> BuildClassSampler(const DataSplitOptions& split, const Dataset& dataset,
                                                           const RankSeed& rank_seed, PlaceOfKey place_of);

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_CLASS_SAMPLER_BUILDER_H_
