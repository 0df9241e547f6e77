// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/manifest_rows.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>

namespace ssl {
namespace {

constexpr int64_t kColumns = 2 + kMaxFileName;

}  // namespace

at::Tensor RowsFromFiles(const std::vector<ManifestEntry>& files, int64_t rows) {
  at::Tensor table = at::zeros({rows, kColumns}, at::kLong);
  int64_t* cell = table.mutable_data_ptr<int64_t>();
  for (const ManifestEntry& entry : files) {
    cell[0] = entry.size;
    cell[1] = entry.crc32c;
    std::copy(entry.file.begin(), entry.file.end(), cell + 2);
    cell += kColumns;
  }
  return table;
}

std::vector<ManifestEntry> FilesFromRows(const at::Tensor& rows) {
  std::vector<ManifestEntry> files;
  const int64_t* cell = rows.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < rows.size(0); ++row, cell += kColumns) {
    const int64_t* name = cell + 2;
    const int64_t* end = std::find(name, name + kMaxFileName, 0);
    if (end == name) continue;  // padding: no file is without a name
    files.push_back({std::string(name, end), cell[0], static_cast<uint32_t>(cell[1])});
  }
  return files;
}

}  // namespace ssl
