// SPDX-License-Identifier: Apache-2.0
//
// What a file of torch.save holds, read by ssl/io/torch_file.h: plain data and tensors. Values refer to each other and
// to the file's bytes, which TorchFile::owner keeps; const use is thread-safe.

#ifndef SSL_IO_TORCH_VALUE_H_
#define SSL_IO_TORCH_VALUE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl {

enum class TorchDtype { kFloat64, kFloat32, kFloat16, kBfloat16, kInt64, kInt32, kInt16, kInt8, kUint8, kBool };

// Bytes of one value.
int64_t TorchDtypeBytes(TorchDtype dtype);

// Strides are in values and not negative. Tensors may share bytes.
struct TorchTensor {
  TorchDtype dtype = TorchDtype::kFloat32;
  std::vector<int64_t> shape;  // [] for a scalar
  std::vector<int64_t> strides;
  absl::string_view bytes;  // from the first value to the last one that shape and strides reach; any alignment
};

// One value of the tree. A value may be part of several others, but never of itself, and a walk that meets shared
// values again ends after 2 million of them.
struct TorchValue {
  enum class Kind {
    kNull,
    kBool,
    kInt,
    kDouble,
    kString,  // str and bytes
    kList,    // list, tuple, torch.Size
    kDict,
    kTensor,
    kObject,   // a function, a class, or an object of one: nothing is known of it but the name
    kStorage,  // while a file is read; never in a tree that was
  };

  Kind kind = Kind::kNull;
  int64_t integer = 0;                   // kInt; kBool: 0 or 1; the reader's own of a kObject
  double number = 0.0;                   // kDouble
  absl::string_view text;                // kString; kObject: "module.name"
  std::vector<const TorchValue*> items;  // kList: the values. kDict: key, value, key, value, ...
  const TorchTensor* tensor = nullptr;   // kTensor

  // The value of a key of a kDict, the last one that was set; null without one.
  const TorchValue* Find(absl::string_view key) const;
};

}  // namespace ssl

#endif  // SSL_IO_TORCH_VALUE_H_
