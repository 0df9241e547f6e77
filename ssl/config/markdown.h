// SPDX-License-Identifier: Apache-2.0
//
// What can be named in a configuration, and its options, as pages of the documentation show them.
#ifndef SSL_CONFIG_MARKDOWN_H_
#define SSL_CONFIG_MARKDOWN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/help.h"

namespace ssl {

// `text` as a span of code, which may stand in a table; nothing of an empty one.
std::string MarkdownCode(absl::string_view text);

// A table of the rows after an empty line; first_column: the heading of the keys.
std::string MarkdownTable(absl::string_view first_column, const std::vector<HelpRow>& rows);

// What a configuration names in a list or a key, such as a transform.
struct NamedEntry {
  std::string name;
  std::string summary;                // Markdown
  std::unique_ptr<Options> defaults;  // its parameters; null: it has none
};

// A section of a page: name, summary, and a table where there are parameters.
std::string MarkdownSection(const NamedEntry& entry);

}  // namespace ssl

#endif  // SSL_CONFIG_MARKDOWN_H_
