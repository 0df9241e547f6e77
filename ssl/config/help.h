// SPDX-License-Identifier: Apache-2.0
//
// Help text of options: a table with key, type, default, range and documentation.
//
//   std::cout << FormatHelpRows(HelpRows("config.LOSS.swav_loss", options));
#ifndef SSL_CONFIG_HELP_H_
#define SSL_CONFIG_HELP_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

// The type of a row that stands for a nested map.
constexpr char kSectionType[] = "section";

// One field; `key` is its full path.
struct HelpRow {
  std::string key;
  std::string type;
  std::string default_value;  // Whole; the table shows its beginning.
  std::string range;
  std::string doc;
  bool may_change = false;  // between the start of a run and its resume; of a section: all below
};

// The fields of `options`, those of nested sections in place. Does not change `options`.
std::vector<HelpRow> HelpRows(absl::string_view path, Options& options);

// The value on one line, as people write it: [0.5, x], {a: 1}, "" for an empty text.
std::string FormatValue(const ConfigNode& node);

// Lines with aligned columns under a heading; "" for no rows.
std::string FormatHelpRows(const std::vector<HelpRow>& rows);

}  // namespace ssl

#endif  // SSL_CONFIG_HELP_H_
