// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/torch_value.h"

#include <array>
#include <cstddef>

namespace ssl {

int64_t TorchDtypeBytes(TorchDtype dtype) {
  constexpr std::array<int64_t, 10> kBytes = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
  return kBytes[static_cast<size_t>(dtype)];
}

const TorchValue* TorchValue::Find(absl::string_view key) const {
  if (kind != Kind::kDict) return nullptr;
  for (size_t i = items.size(); i >= 2; i -= 2) {
    if (items[i - 2]->kind == Kind::kString && items[i - 2]->text == key) return items[i - 1];
  }
  return nullptr;
}

}  // namespace ssl
