// SPDX-License-Identifier: Apache-2.0
//
// The dtypes that safetensors files hold, in both spellings. Thread-safe.
#ifndef SSL_IO_TENSOR_DTYPE_H_
#define SSL_IO_TENSOR_DTYPE_H_

#include <ATen/core/Tensor.h>

#include <optional>

#include "absl/strings/string_view.h"

namespace ssl {

// "BF16" -> at::kBFloat16; none for a name that the format does not have.
std::optional<at::ScalarType> ScalarTypeOf(absl::string_view safetensors_name);

// at::kBFloat16 -> "BF16"; "" for a dtype that the format cannot hold.
absl::string_view SafetensorsNameOf(at::ScalarType type);

}  // namespace ssl

#endif  // SSL_IO_TENSOR_DTYPE_H_
