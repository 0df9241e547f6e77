// SPDX-License-Identifier: Apache-2.0
//
// The members of a tar file, one after another: POSIX ustar with pax paths and sizes, and GNU long names. The file is
// not trusted: every header has a checksum, and what it claims is compared with the size of the file.
#ifndef SSL_DATA_DATASETS_TAR_READER_H_
#define SSL_DATA_DATASETS_TAR_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct TarMember {
  std::string name;     // bytes as they are, such as "train/0001.jpg"
  bool is_file = true;  // else a link, a device, ...; folders are not handed out
  int64_t offset = 0;   // of its bytes
  int64_t size = 0;
};

class TarReader {
 public:
  // file: outlives the reader. path: for messages.
  TarReader(const ReadableFile& file, std::string path) : file_(file), path_(std::move(path)) {}

  // The next member; false at the end mark. DataLoss names path and place: a damaged header, a member that is cut off,
  // no end mark.
  absl::StatusOr<bool> Next(TarMember* member);

  // After the end mark: whether another tar file follows, as `cat` joins them. Its members are not handed out.
  bool IsFollowed();

  // The bytes of a member that Next gave.
  absl::StatusOr<std::string> Read(const TarMember& member) const;

 private:
  struct Header;

  absl::StatusOr<bool> ReadHeader(Header* header);
  // What an extended header says of the member after it.
  absl::Status TakePax(const Header& header);
  absl::Status Error(int64_t at, absl::string_view what) const;

  const ReadableFile& file_;
  const std::string path_;
  int64_t at_ = 0;         // of the next header
  std::string long_name_;  // of the next member; "": what its header says
  int64_t long_size_ = -1;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_TAR_READER_H_
