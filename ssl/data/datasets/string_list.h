// SPDX-License-Identifier: Apache-2.0
//
// Lists of strings from files: paths of pictures, names of classes.
#ifndef SSL_DATA_DATASETS_STRING_LIST_H_
#define SSL_DATA_DATASETS_STRING_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ssl {

// A .npy file of strings, or a text file with one string a line. Lines end with "\n" or "\r\n"; empty lines at the end
// are left out, other empty lines are an InvalidArgument with path and line. Errors name the path.
absl::StatusOr<std::vector<std::string>> ReadStringList(const std::string& path);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_STRING_LIST_H_
