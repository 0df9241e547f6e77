// SPDX-License-Identifier: Apache-2.0
//
// The flags of a command line, set in gflags. gflags's own parser ends the process with 1 at a mistake and knows no
// nearest name.
#ifndef SSL_TOOLS_COMMAND_FLAGS_H_
#define SSL_TOOLS_COMMAND_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ssl {

// arguments: without the program. Sets --NAME=VALUE, --NAME VALUE, --BOOL and --noBOOL, with one dash or two, up to
// "--"; returns the rest in its order. A flag that `optional_values` has takes a value after "=" only, and counts as
// "all" without. InvalidArgument, with the nearest name of this program's own flags, for an unknown one, for a
// value that is missing, empty or of a wrong type, and for two values of one flag.
absl::StatusOr<std::vector<std::string>> ParseFlags(const std::vector<std::string>& arguments,
                                                    const std::vector<std::string>& optional_values);

}  // namespace ssl

#endif  // SSL_TOOLS_COMMAND_FLAGS_H_
