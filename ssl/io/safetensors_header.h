// SPDX-License-Identifier: Apache-2.0
//
// The table of a safetensors file, without its tensors and without LibTorch.
//
//   file   := length header data
//   length := 8 bytes, little endian, bytes of header, at most 100,000,000
//   header := JSON object, begins with '{', padded with spaces:
//             {"__metadata__": {"key": "value"},
//              "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//   data   := raw little-endian row-major values; offsets are relative to its first byte
//
// Pure functions, thread-safe. A hostile header costs time and memory linear in its size: it
// is read in one pass and left at the first thing that does not belong there.

#ifndef SSL_IO_SAFETENSORS_HEADER_H_
#define SSL_IO_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

inline constexpr int64_t kSafetensorsLengthBytes = 8;
inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr int64_t kMaxSafetensorsTensors = 1'000'000;
inline constexpr int64_t kMaxSafetensorsRank = 64;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;           // F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<int64_t> shape;  // [] for a scalar
  int64_t begin = 0;           // data_offsets
  int64_t end = 0;
};

struct SafetensorsTable {
  std::vector<SafetensorsEntry> entries;  // in the order of the header
  std::map<std::string, std::string> metadata;
};

// Bytes of one value; 0 for a name that is none of the ten dtypes.
int64_t SafetensorsDtypeBytes(absl::string_view dtype);

// The header's length from the first 8 bytes of a file of `file_size` bytes.
absl::StatusOr<int64_t> ParseSafetensorsHeaderLength(absl::string_view first_bytes, int64_t file_size);

// Reads and checks a header: names occur once, extents equal dtype x shape without overflow,
// and the extents tile [0, data_bytes) without hole or overlap. Errors are kDataLoss and name
// the tensor, not the file.
absl::StatusOr<SafetensorsTable> ParseSafetensorsHeader(absl::string_view header, int64_t data_bytes);

// The length field and the header of `table`, padded so that data starts at a multiple of 8.
// Equal tables give equal bytes. InvalidArgument for names or metadata that are not UTF-8,
// names given twice or equal to "__metadata__", and headers above the limit.
absl::StatusOr<std::string> FormatSafetensorsHeader(const SafetensorsTable& table);

}  // namespace ssl

#endif  // SSL_IO_SAFETENSORS_HEADER_H_
