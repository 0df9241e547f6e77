// SPDX-License-Identifier: Apache-2.0
//
// The names that COLLATE_FUNCTION may have.
#ifndef SSL_DATA_COLLATORS_COLLATORS_H_
#define SSL_DATA_COLLATORS_COLLATORS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/markdown.h"
#include "ssl/config/node.h"
#include "ssl/data/collator.h"

namespace ssl {

// Sorted.
std::vector<std::string> CollatorNames();

// Of all of them, sorted by name, for docs/transforms.md: the views that each wants, and its targets.
std::vector<NamedEntry> DescribeCollators();

// params: the map of COLLATE_FUNCTION_PARAMS, which stands at `path` for messages. NotFound for an unknown name,
// InvalidArgument for parameters that the collator does not have.
absl::StatusOr<std::unique_ptr<const Collator>> MakeCollator(const std::string& name, const ConfigNode& params,
                                                             absl::string_view path);

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_COLLATORS_H_
