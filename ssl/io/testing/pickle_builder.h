// SPDX-License-Identifier: Apache-2.0
//
// Pieces of pickles of protocol 2 for tests, as torch.save writes them, honest and hostile. Each piece leaves one value
// on the stack; the others are strings of instructions.

#ifndef SSL_IO_TESTING_PICKLE_BUILDER_H_
#define SSL_IO_TESTING_PICKLE_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ssl {

// The bytes of a number, little endian.
template <class T>
std::string PickleRaw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline std::string PickleText(absl::string_view text) {
  return absl::StrCat("X", PickleRaw(static_cast<uint32_t>(text.size())), text);
}

inline std::string PickleInt(int64_t value) { return absl::StrCat("\x8a\x08", PickleRaw(value)); }

inline std::string PickleInts(const std::vector<int64_t>& values) {
  std::string tuple = "(";
  for (const int64_t value : values) tuple += PickleInt(value);
  return tuple + "t";
}

inline std::string PickleStorage(absl::string_view type, absl::string_view key, int64_t size) {
  return absl::StrCat("(", PickleText("storage"), "ctorch\n", type, "\n", PickleText(key), PickleText("cpu"),
                      PickleInt(size), "tQ");
}

inline std::string PickleTensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& shape,
                                const std::vector<int64_t>& strides) {
  return absl::StrCat("ctorch._utils\n_rebuild_tensor_v2\n(", storage, PickleInt(offset), PickleInts(shape),
                      PickleInts(strides), "\x89", "ccollections\nOrderedDict\n)RtR");
}

// A pickle of protocol 2 that leaves what `body` makes.
inline std::string PickleOf(absl::string_view body) { return absl::StrCat("\x80\x02", body, "."); }

}  // namespace ssl

#endif  // SSL_IO_TESTING_PICKLE_BUILDER_H_
