// SPDX-License-Identifier: Apache-2.0
//
// How one config lies over another: the rule of VISSL's composition.
//
//   MergeInto(&defaults, file);  // file wins
#ifndef SSL_CONFIG_MERGE_H_
#define SSL_CONFIG_MERGE_H_

#include <string>
#include <vector>

#include "ssl/config/node.h"

namespace ssl {

// Maps merge key by key; scalars, lists, null and values of another kind replace whole. New
// keys come last, in the overlay's order. Replaced values bring their own location; the mark
// free_form of `base` stays.
void MergeInto(ConfigNode* base, const ConfigNode& overlay);

// The paths at which both trees have a key and one of them a value: anything but a map, or a free-form map. Trees
// without any only add to each other when they are merged.
std::vector<std::string> CommonKeys(const ConfigNode& left, const ConfigNode& right);

}  // namespace ssl

#endif  // SSL_CONFIG_MERGE_H_
