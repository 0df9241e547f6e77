// SPDX-License-Identifier: Apache-2.0
//
// JSON as a tree of standard containers: for what is read back where memory may be short. Taking such a tree down
// allocates nothing (that of nlohmann's does, and ends the process when it cannot). Thread-compatible.
#ifndef SSL_IO_JSON_TREE_H_
#define SSL_IO_JSON_TREE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

// No std::variant: that of g++ 12 takes down what it never made when memory runs out in a copy.
struct JsonTree {
  using List = std::vector<JsonTree>;
  using Object = std::vector<std::pair<std::string, JsonTree>>;  // in the order of the text
  enum class Kind { kNull, kBool, kCount, kNumber, kString, kList, kObject };

  JsonTree() = default;
  explicit JsonTree(bool value) : kind(Kind::kBool), boolean(value) {}
  explicit JsonTree(uint64_t value) : kind(Kind::kCount), count(value) {}
  explicit JsonTree(double value) : kind(Kind::kNumber), number(value) {}
  explicit JsonTree(std::string value) : kind(Kind::kString), text(std::move(value)) {}
  explicit JsonTree(List value) : kind(Kind::kList), list(std::move(value)) {}
  explicit JsonTree(Object value) : kind(Kind::kObject), object(std::move(value)) {}

  // Null when this is no object or has no such member.
  const JsonTree* Find(absl::string_view key) const;

  Kind kind = Kind::kNull;
  bool boolean = false;
  uint64_t count = 0;   // a whole number from 0
  double number = 0.0;  // any other
  std::string text;     // UTF-8
  List list;
  Object object;
};

// Deeper lists and objects are refused.
inline constexpr int kMaxJsonDepth = 16;
// More values are refused: a short text may hold millions of empty ones.
inline constexpr int64_t kMaxJsonValues = int64_t{1} << 18;

// InvalidArgument for what is not JSON (RFC 8259), with the line and column, for a key that occurs twice in its object,
// and beyond the limits above.
absl::StatusOr<JsonTree> ParseJson(absl::string_view text);

// One value a line, indented by one blank for each level; ends in a line feed. Bytes that are no UTF-8 are replaced.
std::string WriteJson(const JsonTree& tree);

}  // namespace ssl

#endif  // SSL_IO_JSON_TREE_H_
