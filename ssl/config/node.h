// SPDX-License-Identifier: Apache-2.0
//
// ConfigNode is one value of a config tree: null, scalar text, list or map, with the place in
// a file where it stood. Scalars stay text until somebody asks for a type, so that an error
// can quote what the user wrote. A node is a plain value that owns its children: copy it,
// compare it, share it const between threads.
//
//   ConfigNode root = ConfigNode::Map();
//   root.SetPath("config.OPTIMIZER.num_epochs", ConfigNode::FromInt(100));
//   absl::StatusOr<int64_t> epochs = root.FindPath("config.OPTIMIZER.num_epochs")->AsInt();
#ifndef SSL_CONFIG_NODE_H_
#define SSL_CONFIG_NODE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

// Where a value was written. Values of the command line have the file "command line" and as
// line the position of their token, from 1.
struct SourceLocation {
  std::string file;
  int line = 0;

  // "file:line"; "file" without a line; "built in" without a file.
  std::string ToString() const;
};

// "A.B" and "C" make "A.B.C"; an empty path leaves the key alone.
std::string JoinPath(absl::string_view path, absl::string_view key);

class ConfigNode {
 public:
  enum class Kind { kNull, kScalar, kList, kMap };
  using Entry = std::pair<std::string, ConfigNode>;

  ConfigNode() = default;  // Null.

  static ConfigNode Null(SourceLocation location = {});
  // `quoted` says that the text stood in quotes: "null" in quotes is a string.
  static ConfigNode Scalar(std::string text, bool quoted = false, SourceLocation location = {});
  static ConfigNode List(SourceLocation location = {});
  static ConfigNode Map(SourceLocation location = {});

  static ConfigNode FromInt(int64_t value);
  // Shortest text that reads back to the same double; `value` is finite.
  static ConfigNode FromDouble(double value);
  static ConfigNode FromBool(bool value);
  static ConfigNode FromString(absl::string_view value);
  static ConfigNode FromInts(const std::vector<int64_t>& values);
  static ConfigNode FromDoubles(const std::vector<double>& values);
  static ConfigNode FromStrings(const std::vector<std::string>& values);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_map() const { return kind_ == Kind::kMap; }

  const SourceLocation& location() const { return location_; }
  void set_location_line(int line) { location_.line = line; }
  // Gives the node and everything below it one location.
  void Relocate(const SourceLocation& location);

  // Empty unless the node is a scalar, a list, a map respectively.
  const std::string& text() const { return text_; }
  bool quoted() const { return quoted_; }
  const std::vector<ConfigNode>& items() const { return items_; }
  const std::vector<Entry>& entries() const { return entries_; }  // In order of insertion.

  // For builders of large maps, who look keys up by themselves: keys stay unique.
  std::vector<Entry>* mutable_entries() { return &entries_; }

  // In a tree of defaults: any key may stand below this node.
  bool free_form() const { return free_form_; }
  void set_free_form(bool free_form) { free_form_ = free_form; }

  // Child of a map; nullptr when the node is no map or has no such key.
  const ConfigNode* Find(absl::string_view key) const;
  ConfigNode* FindMutable(absl::string_view key);

  // Walks "A.B.2.C": a key in a map, an index from 0 in a list. "" is the node itself.
  const ConfigNode* FindPath(absl::string_view path) const;

  // The map at `path`, in place, so that whoever reads it can tell where it stands; an empty map when there is none.
  const ConfigNode& Section(absl::string_view path) const;

  // Replaces the child, or adds it last. A node that is no map becomes an empty map first.
  void Set(absl::string_view key, ConfigNode node);
  // Adds an item. A node that is no list becomes an empty list first.
  void Append(ConfigNode node);
  // Set() at the end of a path as in FindPath. What stands on the way and is neither a map nor
  // a list with that index becomes a map.
  void SetPath(absl::string_view path, ConfigNode node);

  // Conversions of a scalar; InvalidArgument "file:line: 'x' is not a number" otherwise.
  absl::StatusOr<bool> AsBool() const;      // true false yes no on off, in any case.
  absl::StatusOr<int64_t> AsInt() const;    // Decimal; underscores between digits as in 16_384.
  absl::StatusOr<double> AsDouble() const;  // 1, 1e-5, .25, 1.; finite.
  absl::StatusOr<std::string> AsString() const;

  // The value for a message: "'text'" (the beginning of a long one), "null", "a list", "a map".
  std::string Describe() const;

  // Compares kinds, texts, order of keys and children; neither locations, quotes nor free_form.
  friend bool operator==(const ConfigNode& left, const ConfigNode& right);
  friend bool operator!=(const ConfigNode& left, const ConfigNode& right) { return !(left == right); }

 private:
  ConfigNode* MutableChild(absl::string_view part);

  Kind kind_ = Kind::kNull;
  bool quoted_ = false;
  bool free_form_ = false;
  std::string text_;
  std::vector<ConfigNode> items_;
  std::vector<Entry> entries_;
  SourceLocation location_;
};

}  // namespace ssl

#endif  // SSL_CONFIG_NODE_H_
