// SPDX-License-Identifier: Apache-2.0
//
// The entries of a zip archive in memory (PKWARE APPNOTE 6.3), stored or deflated, with zip64: what torch.save writes.
//
// Everything that the archive claims is checked against its size before memory is allocated: entries lie inside the
// file, before the central directory, and do not overlap; local headers agree with the directory; a deflated entry
// claims no more than deflate can give. Encrypted and split archives are refused. Pure functions, thread-safe; errors
// name the entry, not the file: kDataLoss for what breaks the format, kUnimplemented for what is refused.
//
//   SSL_ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ReadZipDirectory(file.bytes()));

#ifndef SSL_IO_ZIP_READER_H_
#define SSL_IO_ZIP_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

inline constexpr int64_t kMaxZipEntries = 100'000;

// Views point into the archive.
struct ZipEntry {
  absl::string_view name;
  absl::string_view stored;  // as it lies in the file
  int64_t size = 0;          // bytes of the content; stored.size() unless deflated
  uint32_t crc32 = 0;        // of the content
  bool deflated = false;
};

// True when `file` begins like an archive.
bool IsZip(absl::string_view file);

// In the order of the directory; names are unique.
absl::StatusOr<std::vector<ZipEntry>> ReadZipDirectory(absl::string_view file);

// The content of a deflated entry. Allocates entry.size bytes: the caller limits it.
absl::StatusOr<std::string> InflateZipEntry(const ZipEntry& entry);

// kDataLoss when `content` has another CRC-32 than the entry says. A writer that keeps no checksums leaves 0, which
// matches everything.
absl::Status CheckZipContent(const ZipEntry& entry, absl::string_view content);

}  // namespace ssl

#endif  // SSL_IO_ZIP_READER_H_
