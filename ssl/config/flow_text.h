// SPDX-License-Identifier: Apache-2.0
//
// Values in YAML's flow notation, [1, {a: "b, c"}], where linking a YAML parser is out of place: the choices of a sweep
// and the defaults that a program states about itself. Internal to this package. Stateless; safe from any thread.
//
//   SplitTopLevel("[1,2],'a,b'", ',')  // {"[1,2]", "'a,b'"}
#ifndef SSL_CONFIG_FLOW_TEXT_H_
#define SSL_CONFIG_FLOW_TEXT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

// The pieces of `text` between the separators that stand outside quotes, brackets and braces, without the blanks around
// them; one piece at least. A quote opens where a value begins, so that the one in "it's" opens nothing. Pieces point
// into `text`.
std::vector<absl::string_view> SplitTopLevel(absl::string_view text, char separator);

// The value of `text`: null (also ~ and nothing), true, 3, 1e-5, a bare text, 'quoted', "quoted" with \" \\ \n \t, a
// list or a map; a comma may end a list or a map. Without locations. InvalidArgument quotes the part that is wrong.
absl::StatusOr<ConfigNode> ParseFlowValue(absl::string_view text);

}  // namespace ssl

#endif  // SSL_CONFIG_FLOW_TEXT_H_
