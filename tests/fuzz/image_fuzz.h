// SPDX-License-Identifier: Apache-2.0
//
// What the targets of image formats share.
#ifndef SSL_TESTS_FUZZ_IMAGE_FUZZ_H_
#define SSL_TESTS_FUZZ_IMAGE_FUZZ_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl::fuzz {

// Decodes with limits of a fuzz run: a quarter of a million pixels.
void DecodeForFuzz(absl::string_view bytes);

// The decoder's own sample files whose names end with `suffix`; the program's working directory, or TEST_SRCDIR, holds
// the workspace.
std::vector<std::string> SampleFiles(absl::string_view suffix);

}  // namespace ssl::fuzz

#endif  // SSL_TESTS_FUZZ_IMAGE_FUZZ_H_
