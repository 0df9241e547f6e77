// SPDX-License-Identifier: Apache-2.0
//
// Files that ship with the binary: configurations, and Fashion-MNIST.
#ifndef SSL_TOOLS_RUN_FILES_H_
#define SSL_TOOLS_RUN_FILES_H_

#include <string>

namespace ssl {

// The directory that Bazel lays beside the binary `program` (argv[0]); "" when there is none. Also found when the
// binary is called through a link.
std::string RunFilesDirectory(const std::string& program);

}  // namespace ssl

#endif  // SSL_TOOLS_RUN_FILES_H_
