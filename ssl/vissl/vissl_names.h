// SPDX-License-Identifier: Apache-2.0
//
// The names that VISSL's configurations (facebookresearch/vissl, 09270ed2) may use, by what they name. They tell a name
// that this program lacks from one that is mistyped. Stateless; safe from any thread.
//
//   if (!registries.trunks.Has(name) && IsVisslName(registries.trunks.kind(), name)) ...  // a component to come
#ifndef SSL_VISSL_VISSL_NAMES_H_
#define SSL_VISSL_VISSL_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl {

// kind: as Registry::kind() has it ("trunk", "head", "loss", "transform", "data source", "data set type", "meter",
// "model", "optimizer", "parameter grouping", "schedule", "engine", "train step"), and "collator", "device",
// "label source", "normalisation", "RegNet activation", "RegNet block", "target" and "task". Empty for any other.
const std::vector<std::string>& VisslNames(absl::string_view kind);

// Why this program does not have the one of that name, for messages; "" where it is only not there yet.
absl::string_view WhyNotHere(absl::string_view kind, absl::string_view name);

// Every name is one of the kind "augly transform".
bool IsVisslName(absl::string_view kind, absl::string_view name);

}  // namespace ssl

#endif  // SSL_VISSL_VISSL_NAMES_H_
