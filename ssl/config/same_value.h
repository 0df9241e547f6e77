// SPDX-License-Identifier: Apache-2.0
//
// Whether two values of a config tree mean the same, however they are written. Pure; safe from any thread.
#ifndef SSL_CONFIG_SAME_VALUE_H_
#define SSL_CONFIG_SAME_VALUE_H_

#include "ssl/config/node.h"

namespace ssl {

// Numbers and booleans by value (1e-3 and 0.001, True and true), other texts by their letters, maps whatever the order
// of their keys; null, "", [] and {} alike.
bool SameValue(const ConfigNode& left, const ConfigNode& right);

}  // namespace ssl

#endif  // SSL_CONFIG_SAME_VALUE_H_
