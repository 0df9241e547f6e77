// SPDX-License-Identifier: Apache-2.0
//
// Where the config file that a user names lies. Internal to compose.
//
//   SSL_ASSIGN_OR_RETURN(std::string path, FindConfigFile("swav/swav_8node", {"."}));
#ifndef SSL_CONFIG_FIND_FILE_H_
#define SSL_CONFIG_FIND_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Tries `name`, then `name`.yaml, first as a path and then below the folders configs/config and
// configs/config/pretrain of each search directory; the first file wins. NotFound names the
// places, and the nearest file below them. InvalidArgument for the name of a folder, with files in it, and for "".
absl::StatusOr<std::string> FindConfigFile(absl::string_view name, const std::vector<std::string>& search_dirs);

}  // namespace ssl

#endif  // SSL_CONFIG_FIND_FILE_H_
