// SPDX-License-Identifier: Apache-2.0
//
// Suggestions for mistyped names. A name is near when its Damerau-Levenshtein distance
// (optimal string alignment: insert, delete, replace, swap of neighbours), without regard to
// case, is at most max(2, length / 3) and less than its length. Pure, thread-safe.
//
//   return absl::NotFoundError(
//       absl::StrCat("method 'swva' is not registered", DidYouMean("swva", names)));
//   // method 'swva' is not registered; did you mean 'swav'?

#ifndef SSL_BASE_DID_YOU_MEAN_H_
#define SSL_BASE_DID_YOU_MEAN_H_

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl {

// The nearest candidate, the first one on a tie; "" when none is near, and within `greatest_distance`.
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates,
                        size_t greatest_distance = std::numeric_limits<size_t>::max());

// "; did you mean 'x'?" for the end of a message, or "" when none is near.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace ssl

#endif  // SSL_BASE_DID_YOU_MEAN_H_
