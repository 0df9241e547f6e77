// SPDX-License-Identifier: Apache-2.0
//
// Tar files for tests, byte by byte.
#ifndef SSL_DATA_DATASETS_TESTING_TAR_FILES_H_
#define SSL_DATA_DATASETS_TESTING_TAR_FILES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// A header of 512 bytes as tar writes it. type: '0' for a file, '1' for a hard link, 'x' for an extended header.
std::string TarHeader(const std::string& name, uint64_t size, char type = '0');

// The header, and the content in whole blocks.
std::string TarMember(const std::string& name, absl::string_view content, char type = '0');

std::string TarEnd();

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_TESTING_TAR_FILES_H_
