// SPDX-License-Identifier: Apache-2.0
//
// NumPy's array files (numpy.lib.format, versions 1 to 3), as `numpy.save` writes and `numpy.load` reads them.
//
// Values are little endian, in C order (the last dimension is contiguous). A file is mapped, not read: opening one of
// 100 GB costs nothing, and what its header claims is compared with the size of the file before memory is allocated.
// Refused by name: object arrays (they are pickles), structured arrays, big endian values, Fortran order. No code is
// ever executed from a file. All functions are thread-safe; errors name the file. The file must not shrink while an
// array of it lives (ssl/io/mapped_file.h).
//
//   SSL_ASSIGN_OR_RETURN(const NpyArray features, ReadNpy("features.npy"));       // [N, D]
//   SSL_ASSIGN_OR_RETURN(const absl::Span<const float> values, NpyValues<float>(features));
//   SSL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ReadNpyStrings("train_images.npy"));
//   SSL_RETURN_IF_ERROR(WriteNpy<float>(PosixFileSystem(), "out.npy", {rows, columns}, values));

#ifndef SSL_IO_NPY_H_
#define SSL_IO_NPY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/io/file_system.h"

namespace ssl {

enum class NpyDtype {
  kFloat32,  // <f4
  kFloat64,  // <f8
  kInt32,    // <i4
  kInt64,    // <i8
  kUint8,    // |u1
  kBool,     // |b1, one byte of 0 or 1 each
  kUnicode,  // <Un: n code points of 4 bytes each, padded with zeros
  kBytes,    // |Sn: n bytes each, padded with zeros
};

// A read array. Copies are cheap and share `owner`, which keeps `bytes` valid.
struct NpyArray {
  std::string path;  // for messages
  NpyDtype dtype = NpyDtype::kFloat32;
  int64_t item_bytes = 0;      // of one value: 4 for kFloat32, 4 * n for kUnicode
  std::vector<int64_t> shape;  // [] for a scalar
  absl::string_view bytes;     // size() * item_bytes, aligned to the value type
  std::shared_ptr<const void> owner;

  // Number of values: the product of the shape.
  int64_t size() const { return static_cast<int64_t>(bytes.size()) / item_bytes; }
};

// Opens `path`. kDataLoss for a file that breaks the format (torn, sizes that do not agree, a kBool that is neither 0
// nor 1); kUnimplemented, naming the dtype or the order found, for what is refused above; errors of the file system
// as they are.
absl::StatusOr<NpyArray> ReadNpy(FileSystem& file_system, const std::string& path);
// Of the machine's file system.
absl::StatusOr<NpyArray> ReadNpy(const std::string& path);

// The values of `array` in C order, without a copy; valid as long as array.owner. InvalidArgument names the dtype
// found and the one expected. T: float, double, int32_t, int64_t, uint8_t, bool.
template <class T>
absl::StatusOr<absl::Span<const T>> NpyValues(const NpyArray& array);

// Copies an array of any integer type or bool in C order, for labels and indices. InvalidArgument for other dtypes.
absl::StatusOr<std::vector<int64_t>> NpyInts(const NpyArray& array);

// Copies an array of kUnicode (as UTF-8) or kBytes in C order; padding is removed. InvalidArgument for other dtypes,
// kDataLoss for values that are no code points.
absl::StatusOr<std::vector<std::string>> NpyStrings(const NpyArray& array);

// ReadNpy and NpyStrings in one: file lists and label names.
absl::StatusOr<std::vector<std::string>> ReadNpyStrings(FileSystem& file_system, const std::string& path);
// Of the machine's file system.
absl::StatusOr<std::vector<std::string>> ReadNpyStrings(const std::string& path);

// Writes an array, C order, as format version 1, so that a reader or a crash sees the old file or the new, never a
// part: PATH.tmp-<pid>, fsync, rename, fsync of the directory. Values go to the file without a copy. InvalidArgument
// when the shape does not hold values.size() values. T: float, double, int64_t.
template <class T>
absl::Status WriteNpy(FileSystem& file_system, const std::string& path, const std::vector<int64_t>& shape,
                      absl::Span<const T> values);

}  // namespace ssl

#endif  // SSL_IO_NPY_H_
