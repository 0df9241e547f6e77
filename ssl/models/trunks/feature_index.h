// SPDX-License-Identifier: Apache-2.0
#ifndef SSL_MODELS_TRUNKS_FEATURE_INDEX_H_
#define SSL_MODELS_TRUNKS_FEATURE_INDEX_H_

#include <cstddef>
#include <string>
#include <vector>

namespace ssl {

// Where `name` is among `known`. One that is not there throws c10::ValueError, which names the nearest one.
size_t FeatureIndex(const std::string& name, const std::vector<std::string>& known);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_FEATURE_INDEX_H_
