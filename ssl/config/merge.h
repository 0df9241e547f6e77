// SPDX-License-Identifier: Apache-2.0
//
// How one config lies over another: the rule of VISSL's composition.
//
//   MergeInto(&defaults, file);  // file wins
#ifndef SSL_CONFIG_MERGE_H_
#define SSL_CONFIG_MERGE_H_

#include "ssl/config/node.h"

namespace ssl {

// Maps merge key by key; scalars, lists, null and values of another kind replace whole. New
// keys come last, in the overlay's order. Replaced values bring their own location; the mark
// free_form of `base` stays.
void MergeInto(ConfigNode* base, const ConfigNode& overlay);

}  // namespace ssl

#endif  // SSL_CONFIG_MERGE_H_
