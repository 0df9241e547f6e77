// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/errno_status.h"
#include "ssl/io/posix_fd.h"

namespace ssl {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFd(path, O_RDONLY | O_NONBLOCK, "opening"));
  SSL_ASSIGN_OR_RETURN(const int64_t size, RegularFileSize(fd.get(), path));
  if (size == 0) return MappedFile(nullptr, 0);  // mmap refuses an empty range
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "mapping", path);
  return MappedFile(static_cast<const char*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  Unmap();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

MappedFile::~MappedFile() { Unmap(); }

void MappedFile::Unmap() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

}  // namespace ssl
