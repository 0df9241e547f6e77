// SPDX-License-Identifier: Apache-2.0
//
// Which values of a resolved configuration somebody has set. Pure; safe from any thread.
#ifndef SSL_ENGINES_LEFT_AT_DEFAULT_H_
#define SSL_ENGINES_LEFT_AT_DEFAULT_H_

#include "ssl/config/node.h"

namespace ssl {

// Whether nobody has set `value`, neither a file, nor the command line, nor a program, nor an earlier resolver: what
// stands there is the default itself, told by its place (OptionCatalog::Defaults), not a value that is equal to it. Of
// a section: none of its keys. A run's own train_config.yaml sets all keys. Either may be nullptr: there is none.
bool IsLeftAtDefault(const ConfigNode* value, const ConfigNode* by_default);

}  // namespace ssl

#endif  // SSL_ENGINES_LEFT_AT_DEFAULT_H_
