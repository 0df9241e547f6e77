// SPDX-License-Identifier: Apache-2.0
//
// Advice for a file of weights whose names are not those of the model. Pure, thread-safe.

#ifndef SSL_WEIGHTS_WEIGHT_ADVICE_H_
#define SSL_WEIGHTS_WEIGHT_ADVICE_H_

#include <string>
#include <vector>

namespace ssl {

// For the end of an error message: the REMOVE_PREFIX that makes most names of the file those of the trunk, if there is
// one, and up to 5 names of the file with the nearest one of the model each.
std::string AdviseOnNames(const std::vector<std::string>& file_names, const std::vector<std::string>& model_names);

}  // namespace ssl

#endif  // SSL_WEIGHTS_WEIGHT_ADVICE_H_
