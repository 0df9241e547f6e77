// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/mapped_tensor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/io/mapped_file.h"
#include "ssl/io/safetensors_header.h"
#include "ssl/io/tensor_dtype.h"

namespace ssl {
namespace {

// In the order of TorchDtype.
constexpr std::array<at::ScalarType, 10> kTorchTypes = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                                        at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};

// Keeps `owner` until the tensor dies. Bytes that lie where the type may not are copied.
at::Tensor ViewBytes(absl::string_view bytes, at::ScalarType type, at::IntArrayRef shape, at::IntArrayRef strides,
                     const std::shared_ptr<const void>& owner) {
  const at::TensorOptions options = at::TensorOptions().dtype(type);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % c10::elementSize(type) == 0) {
    return at::from_blob(
        const_cast<char*>(bytes.data()), shape, strides, [owner](void*) {}, options);
  }
  const at::Tensor copy = at::empty({static_cast<int64_t>(bytes.size() / c10::elementSize(type))}, options);
  std::memcpy(copy.mutable_data_ptr(), bytes.data(), bytes.size());
  return copy.as_strided(shape, strides);
}

absl::StatusOr<std::vector<NamedTensor>> MapTensors(const std::shared_ptr<const MappedFile>& file) {
  absl::string_view bytes = file->bytes();
  SSL_ASSIGN_OR_RETURN(
      const int64_t header_bytes,
      ParseSafetensorsHeaderLength(bytes.substr(0, kSafetensorsLengthBytes), static_cast<int64_t>(bytes.size())));
  bytes.remove_prefix(kSafetensorsLengthBytes);
  const absl::string_view data = bytes.substr(header_bytes);
  SSL_ASSIGN_OR_RETURN(SafetensorsTable table,
                       ParseSafetensorsHeader(bytes.substr(0, header_bytes), static_cast<int64_t>(data.size())));
  std::vector<NamedTensor> tensors;
  for (SafetensorsEntry& entry : table.entries) {
    const at::ScalarType type = *ScalarTypeOf(entry.dtype);  // the header's parser has checked the name
    const absl::string_view values = data.substr(entry.begin, entry.end - entry.begin);
    if (type == at::kBool && std::any_of(values.begin(), values.end(), [](char v) { return v != 0 && v != 1; })) {
      return absl::DataLossError(absl::StrCat("tensor '", entry.name, "' of bools holds values other than 0 and 1"));
    }
    tensors.push_back(
        {std::move(entry.name), ViewBytes(values, type, entry.shape, c10::contiguous_strides(entry.shape), file)});
  }
  return tensors;
}

}  // namespace

at::Tensor ViewTorchTensor(const TorchTensor& tensor, const std::shared_ptr<const void>& owner) {
  return ViewBytes(tensor.bytes, kTorchTypes[static_cast<size_t>(tensor.dtype)], tensor.shape, tensor.strides, owner);
}

absl::StatusOr<std::vector<NamedTensor>> MapSafetensors(FileSystem& file_system, const std::string& path) {
  SSL_ASSIGN_OR_RETURN(MappedFile mapped, file_system.Map(path));
  const auto file = std::make_shared<const MappedFile>(std::move(mapped));
  const std::string where = absl::StrCat("file ", path);
  std::vector<NamedTensor> tensors;
  SSL_RETURN_IF_ERROR(GuardTorch(where, [&]() -> absl::Status {
    absl::StatusOr<std::vector<NamedTensor>> mapped_tensors = MapTensors(file);
    if (!mapped_tensors.ok()) return Annotate(mapped_tensors.status(), where);
    tensors = *std::move(mapped_tensors);
    return absl::OkStatus();
  }));
  return tensors;
}

absl::StatusOr<std::vector<NamedTensor>> MapSafetensors(const std::string& path) {
  return MapSafetensors(PosixFileSystem(), path);
}

}  // namespace ssl
