// SPDX-License-Identifier: Apache-2.0
//
// results.json of a run directory: the figures that engines report, for scripts.
#ifndef SSL_ENGINES_RESULTS_FILE_H_
#define SSL_ENGINES_RESULTS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Indented JSON: maps, lists, numbers, booleans, null; every other scalar is a string.
std::string ToJson(const ConfigNode& node);

// The file's content; an empty map when there is none.
absl::StatusOr<ConfigNode> ReadResults(const std::string& path, FileSystem& file_system);

// Replaces the file in one step.
absl::Status WriteResults(const std::string& path, const ConfigNode& results, FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_ENGINES_RESULTS_FILE_H_
