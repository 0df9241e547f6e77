// SPDX-License-Identifier: Apache-2.0
//
// The names that TRANSFORMS may hold.
#ifndef SSL_DATA_TRANSFORMS_REGISTER_TRANSFORMS_H_
#define SSL_DATA_TRANSFORMS_REGISTER_TRANSFORMS_H_

#include <vector>

#include "absl/status/status.h"
#include "ssl/config/markdown.h"
#include "ssl/core/registries.h"

namespace ssl {

// AlreadyExists when a name is taken.
absl::Status RegisterTransforms(Registries* registries);

// For docs/transforms.md, of all that RegisterTransforms registers, sorted by name. Summaries say what a transform
// does, whose it is and what its results equal; parameters are those of its own, without `indices` (transform_list.h).
std::vector<NamedEntry> DescribeTransforms();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_REGISTER_TRANSFORMS_H_
