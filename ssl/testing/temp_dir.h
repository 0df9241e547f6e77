// SPDX-License-Identifier: Apache-2.0
//
// Fresh directories for tests, under ::testing::TempDir(). They stay after the test, so that
// a failure can be inspected; Bazel empties the place. Thread-safe.
//
//   const std::string dir = MakeTempDir("checkpoint");  // ".../checkpoint_k3Xf9a"

#ifndef SSL_TESTING_TEMP_DIR_H_
#define SSL_TESTING_TEMP_DIR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// An empty directory that no other call got; the path has no trailing '/'. `name` is the
// start of its last component and holds no '/'. Ends the test program when it cannot be made.
std::string MakeTempDir(absl::string_view name);

}  // namespace ssl

#endif  // SSL_TESTING_TEMP_DIR_H_
