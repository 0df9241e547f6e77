// SPDX-License-Identifier: Apache-2.0
//
// Zip archives for tests, honest and hostile. Ends the test program on nonsense of its own.

#ifndef SSL_IO_TESTING_ZIP_BUILDER_H_
#define SSL_IO_TESTING_ZIP_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ssl {

// One entry. What is not set is what the content makes it; what is set is what the archive claims.
struct ZipItem {
  std::string name;
  std::string content;
  bool deflate = false;
  bool zip64 = false;  // sizes and offset stand in the zip64 extra field
  std::optional<uint64_t> claimed_size = {};
  std::optional<uint64_t> claimed_stored_size = {};
  std::optional<uint64_t> claimed_offset = {};
  std::optional<uint32_t> claimed_crc32 = {};
  std::string local_name = {};  // "" for `name`
  uint16_t flags = 0;
  uint16_t method = 0;  // 0: stored or deflated, as `deflate` says
};

// zip64_end: the end record stands in zip64 form, too.
std::string BuildZip(const std::vector<ZipItem>& items, bool zip64_end = false);

}  // namespace ssl

#endif  // SSL_IO_TESTING_ZIP_BUILDER_H_
