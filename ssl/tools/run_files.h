// SPDX-License-Identifier: Apache-2.0
//
// Files that ship with the binary: configurations, and Fashion-MNIST.
#ifndef SSL_TOOLS_RUN_FILES_H_
#define SSL_TOOLS_RUN_FILES_H_

#include <string>

namespace ssl {

// The directory that RUNFILES_DIR names, or that Bazel lays beside the binary `program` (argv[0]), also when that is
// called through a link. When there is none, as beside a copy of the binary, where it would be: a message about a file
// that is missing there says so.
std::string RunFilesDirectory(const std::string& program);

}  // namespace ssl

#endif  // SSL_TOOLS_RUN_FILES_H_
