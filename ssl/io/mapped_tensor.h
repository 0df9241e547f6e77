// SPDX-License-Identifier: Apache-2.0
//
// Tensors over the bytes of a mapped file, without a copy. They are read-only: writing into one ends the process. The
// file must not shrink while one lives (ssl/io/mapped_file.h). Thread-safe; LibTorch exceptions pass where said.
//
//   SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, MapSafetensors("model.safetensors"));

#ifndef SSL_IO_MAPPED_TENSOR_H_
#define SSL_IO_MAPPED_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors.h"
#include "ssl/io/torch_value.h"

namespace ssl {

// A tensor of a torch.save file; `owner` is TorchFile::owner and lives as long as the tensor. Values that the legacy
// format left unaligned are copied. May throw LibTorch exceptions.
at::Tensor ViewTorchTensor(const TorchTensor& tensor, const std::shared_ptr<const void>& owner);

// What ReadSafetensors gives, as views. The whole table is checked; kDataLoss, naming the file, for what breaks the
// format.
absl::StatusOr<std::vector<NamedTensor>> MapSafetensors(FileSystem& file_system, const std::string& path);
// Of the machine's file system.
absl::StatusOr<std::vector<NamedTensor>> MapSafetensors(const std::string& path);

}  // namespace ssl

#endif  // SSL_IO_MAPPED_TENSOR_H_
