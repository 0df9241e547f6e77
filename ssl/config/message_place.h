// SPDX-License-Identifier: Apache-2.0
//
// Where the keys of a message stand. Most parts of a run know values, not places; a message that names a key gets the
// place of it here, once for all of them. Stateless; safe from any thread.
//
//   WithPlaceOfKey("config.HOOKS.EVAL.FEATURES is 'res7', expected ...", root)
//   // "swav.yaml:12: config.HOOKS.EVAL.FEATURES is 'res7', expected ..."
#ifndef SSL_CONFIG_MESSAGE_PLACE_H_
#define SSL_CONFIG_MESSAGE_PLACE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

// `line` behind the place of the first key in it, "config.A.B", that stands in a file or on the command line; what to
// type, "config.A.B=2", is no such key. A line that has a place stays as it is. The subject of a line ("config.A.B is
// 2") that nobody set is marked as "(not set)", and the line gets no place: another key's would pass for its own.
// root: {config: ...}.
std::string WithPlaceOfKey(absl::string_view line, const ConfigNode& root);

}  // namespace ssl

#endif  // SSL_CONFIG_MESSAGE_PLACE_H_
