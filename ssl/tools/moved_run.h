// SPDX-License-Identifier: Apache-2.0
//
// The configuration that a run has written into its directory belongs to that directory, also when it was moved or
// copied, or is named from another working directory.
#ifndef SSL_TOOLS_MOVED_RUN_H_
#define SSL_TOOLS_MOVED_RUN_H_

#include <string>
#include <vector>

#include "ssl/config/node.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Where `file` has the name under which a command writes its configuration, a run's checkpoints lie beside it, and
// CHECKPOINT.DIR of `root`, which stands in that file, is another place, sets it to the directory of the file. A
// sentence about it; "" where nothing was changed. engines: all that there are.
std::string TakeDirectoryOfFile(const std::string& file, const std::vector<std::string>& engines,
                                FileSystem& file_system, ConfigNode* root);

}  // namespace ssl

#endif  // SSL_TOOLS_MOVED_RUN_H_
