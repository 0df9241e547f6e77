// SPDX-License-Identifier: Apache-2.0
//
// Which samples each class has: what the samplers that choose by class work on.
#ifndef SSL_DATA_SAMPLERS_CLASS_INDEX_H_
#define SSL_DATA_SAMPLERS_CLASS_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/data/dataset.h"

namespace ssl {

// By class, in ascending order of the labels; each class has its samples in the data set's order, at least one.
using ClassIndex = std::vector<std::vector<int64_t>>;

// InvalidArgument when a sample has no class.
absl::StatusOr<ClassIndex> MakeClassIndex(const Dataset& dataset);

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_CLASS_INDEX_H_
