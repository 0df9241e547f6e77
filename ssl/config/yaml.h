// SPDX-License-Identifier: Apache-2.0
//
// YAML text to ConfigNode and back. The reader takes what config files of VISSL hold (flow
// lists with trailing commas and comment lines, quoted keys, keys without a value) and refuses
// what a config never needs: tags, merge keys, several documents, keys that are no text.
// Text of strangers is safe: size, depth and number of nodes are limited before memory or
// stack is spent on them. Stateless; safe from any thread.
//
//   std::vector<std::string> warnings;
//   SSL_ASSIGN_OR_RETURN(ConfigNode root, ParseYaml(text, "swav.yaml", &warnings));
#ifndef SSL_CONFIG_YAML_H_
#define SSL_CONFIG_YAML_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

constexpr int64_t kMaxYamlBytes = int64_t{1} << 20;
constexpr int kMaxYamlDepth = 64;
// Scalars, lists and maps; an alias counts as a copy of what it stands for.
constexpr int64_t kMaxYamlNodes = 100000;
constexpr int64_t kMaxYamlKeyBytes = 512;

// The one document in `text`; Null for an empty one. `file_name` names it in messages and
// locations. A key that stands twice in a map keeps its last value and adds a line to
// `warnings` (may be nullptr). Errors are InvalidArgument "file:line: what".
absl::StatusOr<ConfigNode> ParseYaml(absl::string_view text, absl::string_view file_name,
                                     std::vector<std::string>* warnings);

// Text that ParseYaml reads back to an equal tree (within its limits): maps in block style,
// lists of scalars on one line.
std::string WriteYaml(const ConfigNode& node);

}  // namespace ssl

#endif  // SSL_CONFIG_YAML_H_
