// SPDX-License-Identifier: Apache-2.0
//
// Reader of IDX files, the format of MNIST and Fashion-MNIST, plain or compressed by gzip (told by the content, not
// by the name). Layout, big-endian:
//
//   byte 0-1: zero | byte 2: type, 0x08 = unsigned byte | byte 3: number of dimensions n
//   n x uint32: dimensions | then the values, last dimension fastest, up to the end of the file
//
// The header is checked against the size of the file before memory is taken: a wrong or hostile file costs nothing,
// and decompression ends where the header says.
#ifndef SSL_DATA_DATASETS_IDX_FILE_H_
#define SSL_DATA_DATASETS_IDX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct IdxArray {
  std::vector<int64_t> shape;
  std::vector<uint8_t> values;
};

// num_dimensions: how many the caller expects (3 for images, 1 for labels).
// DataLoss for a damaged file, InvalidArgument for a file of another kind; the message opens with the path.
absl::StatusOr<IdxArray> ReadIdx(FileSystem& file_system, const std::string& path, int num_dimensions);

// The same for bytes in memory; `name` stands for the path.
absl::StatusOr<IdxArray> ParseIdx(absl::string_view bytes, absl::string_view name, int num_dimensions);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_IDX_FILE_H_
