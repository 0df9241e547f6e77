// SPDX-License-Identifier: Apache-2.0
//
// A file as read-only memory, for large inputs that are read in place. Movable; the bytes
// stay valid and unchanged in place until the object dies. Any thread may read them.
// A file that shrinks or a disk that fails while mapped raises SIGBUS: use
// FileSystem::OpenRead where the file is not known to be at rest.
//
//   SSL_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
//   Parse(file.bytes());

#ifndef SSL_IO_MAPPED_FILE_H_
#define SSL_IO_MAPPED_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

class MappedFile {
 public:
  // Regular files only; an empty file gives empty bytes.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  absl::string_view bytes() const { return absl::string_view(data_, size_); }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  void Unmap();

  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ssl

#endif  // SSL_IO_MAPPED_FILE_H_
