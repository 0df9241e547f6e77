// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/safetensors.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors_header.h"
#include "ssl/io/tensor_dtype.h"

namespace ssl {
namespace {

// Small enough that the checksum finds the bytes in the cache that the copy has filled.
constexpr size_t kPieceBytes = size_t{1} << 20;

absl::StatusOr<SafetensorsEntry> DescribeTensor(const NamedTensor& named) {
  const at::Tensor& tensor = named.tensor;
  const std::string where = absl::StrCat("tensor '", named.name, "'");
  if (!tensor.defined()) return absl::InvalidArgumentError(absl::StrCat(where, " is undefined"));
  if (tensor.layout() != at::kStrided || tensor.is_meta()) {
    return absl::InvalidArgumentError(absl::StrCat(where, " is sparse or without data, expected a dense tensor"));
  }
  const absl::string_view dtype = SafetensorsNameOf(tensor.scalar_type());
  if (dtype.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": dtype is ", c10::toString(tensor.scalar_type()), ", which safetensors cannot hold"));
  }
  SafetensorsEntry entry;
  entry.name = named.name;
  entry.dtype = std::string(dtype);
  entry.shape = tensor.sizes().vec();
  return entry;
}

// The order of the data: wider values first, else as given.
std::vector<size_t> DataOrder(const std::vector<NamedTensor>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return tensors[a].tensor.element_size() > tensors[b].tensor.element_size();
  });
  return order;
}

// A file that knows size and checksum of what was appended.
class DigestingFile {
 public:
  explicit DigestingFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  absl::Status Append(absl::string_view bytes) {
    while (!bytes.empty()) {
      const absl::string_view piece = bytes.substr(0, kPieceBytes);
      SSL_RETURN_IF_ERROR(file_->Append(piece));
      digest_.crc32c = ExtendCrc32c(digest_.crc32c, piece);
      digest_.size += static_cast<int64_t>(piece.size());
      bytes.remove_prefix(piece.size());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FileDigest> Finish() {
    SSL_RETURN_IF_ERROR(file_->Sync());
    SSL_RETURN_IF_ERROR(file_->Close());
    return digest_;
  }

 private:
  const std::unique_ptr<WritableFile> file_;
  FileDigest digest_;
};

absl::Status AppendTensor(const at::Tensor& tensor, DigestingFile& file) {
  // A no-op each for a contiguous tensor on the CPU; else one copy that dies here.
  const at::Tensor rows = tensor.detach().cpu().resolve_neg().contiguous();
  return file.Append(absl::string_view(static_cast<const char*>(rows.const_data_ptr()), rows.nbytes()));
}

absl::StatusOr<FileDigest> Write(FileSystem& file_system, const std::string& path,
                                 const std::vector<NamedTensor>& tensors,
                                 const std::map<std::string, std::string>& metadata) {
  SafetensorsTable table;
  table.metadata = metadata;
  for (const NamedTensor& named : tensors) {
    SSL_ASSIGN_OR_RETURN(SafetensorsEntry entry, DescribeTensor(named));
    table.entries.push_back(std::move(entry));
  }
  const std::vector<size_t> order = DataOrder(tensors);
  int64_t offset = 0;
  for (const size_t index : order) {
    table.entries[index].begin = offset;
    offset += static_cast<int64_t>(tensors[index].tensor.nbytes());
    table.entries[index].end = offset;
  }
  SSL_ASSIGN_OR_RETURN(const std::string header, FormatSafetensorsHeader(table));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> created, file_system.Create(path));
  DigestingFile file(std::move(created));
  SSL_RETURN_IF_ERROR(file.Append(header));
  for (const size_t index : order) {
    SSL_RETURN_IF_ERROR(AppendTensor(tensors[index].tensor, file));
  }
  return file.Finish();
}

// Any other byte in a bool is undefined behaviour in every kernel that reads it.
absl::Status CheckBools(const SafetensorsEntry& entry, absl::Span<const char> bytes) {
  for (const char byte : bytes) {
    if (static_cast<uint8_t>(byte) <= 1) continue;
    return absl::DataLossError(
        absl::StrCat("tensor '", entry.name, "': value is ", static_cast<uint8_t>(byte), ", expected 0 or 1 in BOOL"));
  }
  return absl::OkStatus();
}

absl::StatusOr<at::Tensor> ReadTensor(const ReadableFile& file, const SafetensorsEntry& entry, int64_t data_start) {
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(*ScalarTypeOf(entry.dtype)));
  const absl::Span<char> bytes(static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes());
  SSL_RETURN_IF_ERROR(file.ReadAt(data_start + entry.begin, bytes));
  if (entry.dtype == "BOOL") SSL_RETURN_IF_ERROR(CheckBools(entry, bytes));
  return tensor;
}

absl::StatusOr<SafetensorsContent> ReadContent(const ReadableFile& file) {
  std::array<char, kSafetensorsLengthBytes> first = {};
  if (file.size() >= kSafetensorsLengthBytes) {
    SSL_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(first)));
  }
  SSL_ASSIGN_OR_RETURN(const int64_t header_bytes,
                       ParseSafetensorsHeaderLength(absl::string_view(first.data(), first.size()), file.size()));
  std::string header(header_bytes, '\0');
  SSL_RETURN_IF_ERROR(file.ReadAt(kSafetensorsLengthBytes, absl::MakeSpan(header)));
  const int64_t data_start = kSafetensorsLengthBytes + header_bytes;
  SSL_ASSIGN_OR_RETURN(SafetensorsTable table, ParseSafetensorsHeader(header, file.size() - data_start));
  SafetensorsContent content;
  content.metadata = std::move(table.metadata);
  content.tensors.reserve(table.entries.size());
  for (SafetensorsEntry& entry : table.entries) {
    SSL_ASSIGN_OR_RETURN(at::Tensor tensor, ReadTensor(file, entry, data_start));
    content.tensors.push_back({std::move(entry.name), std::move(tensor)});
  }
  return content;
}

}  // namespace

absl::StatusOr<FileDigest> WriteSafetensors(FileSystem& file_system, const std::string& path,
                                            const std::vector<NamedTensor>& tensors,
                                            const std::map<std::string, std::string>& metadata) {
  FileDigest digest;
  SSL_RETURN_IF_ERROR(GuardTorch(absl::StrCat("file ", path), [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(digest, Write(file_system, path, tensors, metadata));
    return absl::OkStatus();
  }));
  return digest;
}

absl::StatusOr<SafetensorsContent> ReadSafetensors(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, file_system.OpenRead(path));
  const std::string where = absl::StrCat("file ", path);
  SafetensorsContent content;
  SSL_RETURN_IF_ERROR(GuardTorch(where, [&]() -> absl::Status {
    absl::StatusOr<SafetensorsContent> read = ReadContent(*file);
    if (!read.ok()) return Annotate(read.status(), where);
    content = *std::move(read);
    return absl::OkStatus();
  }));
  return content;
}

absl::StatusOr<SafetensorsContent> ReadSafetensors(const std::string& path) {
  return ReadSafetensors(PosixFileSystem(), path);
}

}  // namespace ssl
