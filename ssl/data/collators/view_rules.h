// SPDX-License-Identifier: Apache-2.0
//
// What collators have in common: the views that they accept, even batches, and parameters that they do not have.
#ifndef SSL_DATA_COLLATORS_VIEW_RULES_H_
#define SSL_DATA_COLLATORS_VIEW_RULES_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/data/sample.h"

namespace ssl {

// The views that a collator accepts.
struct ViewRule {
  std::string name;  // of the collator
  int min_views = 1;
  int max_views = std::numeric_limits<int>::max();
  bool one_size = false;
  std::string text;  // for messages: "1 view"
  int first = 0;     // one_size: of the views from here on
};

// InvalidArgument names the collator, what the transforms make and what was expected.
absl::Status CheckViews(const ViewRule& rule, const Sample& sample);

// InvalidArgument when a collator that mixes pairs of samples gets an odd number of them.
absl::Status CheckEvenRows(absl::string_view collator, int64_t rows);

// InvalidArgument when there are parameters, which stand at `path`.
absl::Status CheckNoParameters(const ConfigNode& params, absl::string_view path);

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_VIEW_RULES_H_
