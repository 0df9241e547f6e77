// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/feature_index.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {

size_t FeatureIndex(const std::string& name, const std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), name);
  TORCH_CHECK_VALUE(found != known.end(), "feature '", name, "' is not one of ", absl::StrJoin(known, ", "),
                    DidYouMean(name, known));
  return static_cast<size_t>(found - known.begin());
}

}  // namespace ssl
