// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/read_file.h"

#include <fcntl.h>

#include <cstddef>
#include <memory>

#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/posix_fd.h"

namespace ssl {
namespace {

int64_t SizeOf(const FilePart& part, int64_t file_size) { return part.size < 0 ? file_size - part.offset : part.size; }

absl::Status ReadPosixFilePart(const std::string& path, const FilePart& part, MemoryForFile memory_for) {
  // O_NONBLOCK: opening a FIFO would wait for a writer; regular files ignore it.
  SSL_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFd(path, O_RDONLY | O_NONBLOCK, "opening"));
  SSL_ASSIGN_OR_RETURN(const int64_t file_size, RegularFileSize(fd.get(), path));
  const int64_t size = SizeOf(part, file_size);
  SSL_ASSIGN_OR_RETURN(char* const memory, memory_for(size));
  return ReadExactly(fd.get(), part.offset, absl::MakeSpan(memory, static_cast<size_t>(size)), path);
}

}  // namespace

absl::Status ReadFilePart(FileSystem& file_system, const std::string& path, const FilePart& part,
                          MemoryForFile memory_for) {
  if (&file_system == &PosixFileSystem()) return ReadPosixFilePart(path, part, memory_for);
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, file_system.OpenRead(path));
  return ReadFilePart(*file, part, memory_for);
}

absl::Status ReadFilePart(const ReadableFile& file, const FilePart& part, MemoryForFile memory_for) {
  const int64_t size = SizeOf(part, file.size());
  SSL_ASSIGN_OR_RETURN(char* const memory, memory_for(size));
  return file.ReadAt(part.offset, absl::MakeSpan(memory, static_cast<size_t>(size)));
}

}  // namespace ssl
