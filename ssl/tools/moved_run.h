// SPDX-License-Identifier: Apache-2.0
//
// The configuration that a run has written into its directory belongs to that directory, also when it was moved or
// copied, or is named from another working directory.
#ifndef SSL_TOOLS_MOVED_RUN_H_
#define SSL_TOOLS_MOVED_RUN_H_

#include <string>

#include "ssl/config/node.h"
#include "ssl/io/file_system.h"

namespace ssl {

// Where `file` lies in the directory of a run, and CHECKPOINT.DIR of `root`, which stands in that file, is another
// place, sets it to the directory. A sentence about it; "" where nothing was changed.
std::string TakeDirectoryOfFile(const std::string& file, FileSystem& file_system, ConfigNode* root);

}  // namespace ssl

#endif  // SSL_TOOLS_MOVED_RUN_H_
