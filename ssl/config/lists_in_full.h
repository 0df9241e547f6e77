// SPDX-License-Identifier: Apache-2.0
//
// One way to write what may be written in two: a list of one string that stands as that string (Doc::MayBeOne). Whoever
// resolves a configuration calls it for structs that have such fields, those of hooks (ssl/hooks/configured_hooks.h):
// a run that goes on compares what its configuration is resolved to.
#ifndef SSL_CONFIG_LISTS_IN_FULL_H_
#define SSL_CONFIG_LISTS_IN_FULL_H_

#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

// Makes each text of `map` that stands for a list of it alone that list, in nested sections too; its place stays.
// Values that are wrong stay as they are. options: the fields of that map; their values are not looked at.
void WriteListsInFull(Options& options, ConfigNode* map);

}  // namespace ssl

#endif  // SSL_CONFIG_LISTS_IN_FULL_H_
