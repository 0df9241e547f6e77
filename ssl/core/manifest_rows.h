// SPDX-License-Identifier: Apache-2.0
//
// The files of a manifest as a tensor, the form in which they travel between ranks. Pure, thread-safe; may throw
// LibTorch exceptions.
#ifndef SSL_CORE_MANIFEST_ROWS_H_
#define SSL_CORE_MANIFEST_ROWS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "ssl/io/manifest.h"

namespace ssl {

// Bytes of a file name that a row has room for.
inline constexpr int64_t kMaxFileName = 128;

// [rows, 2 + kMaxFileName] int64: size, CRC-32C, name. `rows` is at least the number of files; the rest is padding.
at::Tensor RowsFromFiles(const std::vector<ManifestEntry>& files, int64_t rows);

// The files of [rows, 2 + kMaxFileName], without the padding.
std::vector<ManifestEntry> FilesFromRows(const at::Tensor& rows);

}  // namespace ssl

#endif  // SSL_CORE_MANIFEST_ROWS_H_
