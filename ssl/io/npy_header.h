// SPDX-License-Identifier: Apache-2.0
//
// The header of NumPy's array files, without their values.
//
//   file   := "\x93NUMPY" major minor length text values
//   length := 2 bytes in version 1, else 4, little endian
//   text   := {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, padded with spaces to a multiple of 64
//
// Pure functions, thread-safe. A hostile header costs time and memory linear in its size, which is limited.

#ifndef SSL_IO_NPY_HEADER_H_
#define SSL_IO_NPY_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

inline constexpr size_t kMaxNpyHeaderBytes = 1 << 16;
inline constexpr size_t kMaxNpyRank = 64;  // of NumPy 2

struct NpyHeader {
  std::string descr;  // the dtype: "<f4", "<U12"
  bool fortran_order = false;
  std::vector<int64_t> shape;  // [] for a scalar; no size is negative
};

// Takes the header off the front of a file's `bytes`, which are its values then. Errors do not name the file: kDataLoss
// for what breaks the format, kUnimplemented for structured arrays and other format versions.
absl::StatusOr<NpyHeader> TakeNpyHeader(absl::string_view* bytes);

// All bytes before the values, in version 1: a multiple of 64. `header` keeps the limits above.
std::string FormatNpyHeader(const NpyHeader& header);

// Text from a file for a message: short and printable, in quotes.
std::string QuoteNpyText(absl::string_view text);

}  // namespace ssl

#endif  // SSL_IO_NPY_HEADER_H_
