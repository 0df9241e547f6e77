// SPDX-License-Identifier: Apache-2.0
//
// Advice for a file of weights whose names are not those of the model. Pure, thread-safe.

#ifndef SSL_WEIGHTS_WEIGHT_ADVICE_H_
#define SSL_WEIGHTS_WEIGHT_ADVICE_H_

#include <string>
#include <vector>

namespace ssl {

// For the end of an error message: each REMOVE_PREFIX that makes many names of the file those of the trunk, and which
// of them is usual where a file has an encoder and its moving average (MoCo's query and key, DINO's student and
// teacher); and up to 5 names of the file with the nearest one of the model each.
std::string AdviseOnNames(const std::vector<std::string>& file_names, const std::vector<std::string>& model_names);

}  // namespace ssl

#endif  // SSL_WEIGHTS_WEIGHT_ADVICE_H_
