// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/path_list.h"

#include <algorithm>
#include <cstddef>

namespace ssl {
namespace {

size_t CommonBytes(absl::string_view a, absl::string_view b) {
  const size_t least = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + least, b.begin()).first - a.begin();
}

}  // namespace

void PathList::ShareFolder() {
  if (ends_.empty()) return;
  absl::string_view common = Rest(0);
  for (int64_t i = 1; i < size() && !common.empty(); ++i) common = common.substr(0, CommonBytes(common, Rest(i)));
  const size_t shared = common.rfind('/') + 1;  // 0 where there is none
  if (shared == 0) return;
  prefix_.append(common.data(), shared);
  uint64_t begin = 0;
  uint64_t written = 0;
  for (uint64_t& end : ends_) {
    std::copy(text_.begin() + begin + shared, text_.begin() + end, text_.begin() + written);
    written += end - begin - shared;
    begin = end;
    end = written;
  }
  text_.resize(written);
}

}  // namespace ssl
