// SPDX-License-Identifier: Apache-2.0
//
// Names of files and folders in which somebody else was to put something: a shell for ~ and $HOME, OmegaConf for
// ${oc.env:HOME}. Nothing here does, so that a folder of this very name would be made, or looked for. Safe from any
// thread.
#ifndef SSL_CONFIG_UNEXPANDED_TEXT_H_
#define SSL_CONFIG_UNEXPANDED_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/config/problem.h"

namespace ssl {

// For a message about `path`: "is '~/runs', in which nothing replaces ~ (...); expected /people/me/runs". "" when there
// is nothing to replace, or a file or folder of this very name is there.
std::string UnexpandedIn(absl::string_view path);

// A line for each text at or below `node`, which stands at `path`, of which that holds: no value of a configuration has
// a use for ~/ or $NAME. Defaults, which stand in no file, are left out.
void FindUnexpanded(const ConfigNode& node, const std::string& path, std::vector<ConfigProblem>* problems);

}  // namespace ssl

#endif  // SSL_CONFIG_UNEXPANDED_TEXT_H_
