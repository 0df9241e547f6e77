// SPDX-License-Identifier: Apache-2.0
//
// Files that are read by the thousand each second, into memory of the caller's.
#ifndef SSL_IO_READ_FILE_H_
#define SSL_IO_READ_FILE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/io/file_system.h"

namespace ssl {

// What part of a file is meant.
struct FilePart {
  int64_t offset = 0;
  int64_t size = -1;  // -1: up to the end of the file
};

// Gives the memory for so many bytes, or an error that ends the reading.
using MemoryForFile = absl::FunctionRef<absl::StatusOr<char*>(int64_t size)>;

// Reads the part; errors are those of FileSystem::OpenRead, ReadableFile::ReadAt and `memory_for`. Of the machine's own
// file system (PosixFileSystem) it opens the file itself, and takes no memory.
absl::Status ReadFilePart(FileSystem& file_system, const std::string& path, const FilePart& part,
                          MemoryForFile memory_for);

// The same of an open file.
absl::Status ReadFilePart(const ReadableFile& file, const FilePart& part, MemoryForFile memory_for);

}  // namespace ssl

#endif  // SSL_IO_READ_FILE_H_
