// SPDX-License-Identifier: Apache-2.0
#include "ssl/io/tensor_dtype.h"

namespace ssl {
namespace {

struct Dtype {
  absl::string_view name;
  at::ScalarType type;
};

constexpr Dtype kDtypes[] = {
    {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}, {"I64", at::kLong},
    {"I32", at::kInt},    {"I16", at::kShort}, {"I8", at::kChar},  {"U8", at::kByte},       {"BOOL", at::kBool},
};

}  // namespace

std::optional<at::ScalarType> ScalarTypeOf(absl::string_view safetensors_name) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.name == safetensors_name) return dtype.type;
  }
  return std::nullopt;
}

absl::string_view SafetensorsNameOf(at::ScalarType type) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == type) return dtype.name;
  }
  return "";
}

}  // namespace ssl
