// SPDX-License-Identifier: Apache-2.0
//
// Which run of a sweep a directory belongs to: the choices that made it, kept in sweep_choices.json. Without it, a
// sweep with other values would go on where the first one's runs stand and show their results under the new values.
#ifndef SSL_TOOLS_SWEEP_IDENTITY_H_
#define SSL_TOOLS_SWEEP_IDENTITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/io/file_system.h"

namespace ssl {

// OK when `directory` is new, empty of runs, or made by the run with these choices ("config.SEED_VALUE=1"). Else
// InvalidArgument with both lists and the ways out.
absl::Status CheckRunIdentity(const std::string& directory, const std::vector<std::string>& choices,
                              FileSystem& file_system);

// Makes the directory when it is missing, and notes the choices. Unless they are noted already.
absl::Status WriteRunIdentity(const std::string& directory, const std::vector<std::string>& choices,
                              FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_TOOLS_SWEEP_IDENTITY_H_
