// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/compatibility_keys.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/config/flow_text.h"
#include "ssl/config/key_check.h"
#include "ssl/config/merge.h"
#include "ssl/config/same_value.h"

namespace ssl {
namespace {

using ValueType = CompatibilityKeys::ValueType;

// The type that a value shows. A quoted text is a string, whatever stands in the quotes.
ValueType TypeOf(const ConfigNode& node) {
  if (node.is_list()) return ValueType::kList;
  if (!node.is_scalar()) return ValueType::kAny;
  if (node.quoted()) return ValueType::kString;
  if (node.AsBool().ok()) return ValueType::kBool;
  if (node.AsInt().ok()) return ValueType::kInt;
  return node.AsDouble().ok() ? ValueType::kFloat : ValueType::kString;
}

// The type that all items share: integers and floats make floats; kAny when they share none.
ValueType ElementTypeOf(const ConfigNode& list) {
  if (list.items().empty()) return ValueType::kAny;
  ValueType common = TypeOf(list.items()[0]);
  for (const ConfigNode& item : list.items()) {
    const ValueType type = TypeOf(item);
    const bool is_number = type == ValueType::kInt || type == ValueType::kFloat;
    const bool common_is_number = common == ValueType::kInt || common == ValueType::kFloat;
    if (type == common) continue;
    common = is_number && common_is_number ? ValueType::kFloat : ValueType::kAny;
  }
  return common == ValueType::kList ? ValueType::kAny : common;
}

absl::string_view Name(ValueType type) {
  switch (type) {
    case ValueType::kAny:
      return "any";
    case ValueType::kBool:
      return "bool";
    case ValueType::kInt:
      return "int";
    case ValueType::kFloat:
      return "float";
    case ValueType::kString:
      return "string";
    case ValueType::kList:
      return "list";
  }
  return "";
}

// What a value of another type is told to be; "" for a value of the type.
absl::string_view Mismatch(const ConfigNode& node, ValueType type) {
  switch (type) {
    case ValueType::kAny:
      return "";
    case ValueType::kBool:
      return node.AsBool().ok() ? "" : "true or false";
    case ValueType::kInt:
      return node.AsInt().ok() ? "" : "an integer";
    case ValueType::kFloat:
      return node.AsDouble().ok() ? "" : "a number";
    case ValueType::kString:
      return node.is_scalar() ? "" : "a string";
    case ValueType::kList:
      return node.is_list() ? "" : "a list";
  }
  return "";
}

void CheckValue(const ConfigNode& node, const std::string& path, ValueType type, std::vector<ConfigProblem>* problems) {
  // Files of VISSL have lists and maps where its defaults have a scalar, and nothing here reads them.
  if (node.is_null() || (!node.is_scalar() && type != ValueType::kList)) return;
  const absl::string_view expected = Mismatch(node, type);
  if (!expected.empty()) problems->push_back(WrongValue(node, path, expected));
}

}  // namespace

std::string CompatibilityKeys::Entry::TypeName() const {
  if (type != ValueType::kList || element_type == ValueType::kAny) return std::string(Name(type));
  return absl::StrCat("list of ", Name(element_type));
}

absl::Status CompatibilityKeys::Add(std::vector<CompatibilityKey> keys) {
  CompatibilityKeys next = *this;
  std::vector<std::string> broken;
  std::vector<std::string> taken;
  for (CompatibilityKey& key : keys) {
    absl::StatusOr<ConfigNode> value = ParseFlowValue(key.default_yaml);
    if (HasEmptyPart(key.path)) {
      broken.push_back(absl::StrCat("option catalog: path '", key.path, "' has an empty part"));
    } else if (!value.ok()) {
      broken.push_back(absl::StrCat("option catalog: default of '", key.path, "': ", value.status().message()));
    } else {
      value->set_free_form(value->is_map());
      ConfigNode tree = ConfigNode::Map();
      tree.SetPath(key.path, *value);
      const std::vector<std::string> common = CommonKeys(next.defaults_, tree);
      taken.insert(taken.end(), common.begin(), common.end());
      if (!common.empty()) continue;
      next.defaults_.SetPath(key.path, *value);
      const ValueType type = TypeOf(*value);
      const ValueType element_type = ElementTypeOf(*value);
      next.entries_.push_back({std::move(key), *std::move(value), type, element_type});
    }
  }
  if (!broken.empty()) return absl::InvalidArgumentError(absl::StrJoin(broken, "\n"));
  absl::Status status = DeclaredOnce(taken);
  if (status.ok()) *this = std::move(next);
  return status;
}

void CompatibilityKeys::Check(const ConfigNode& config, std::vector<ConfigProblem>* problems) const {
  for (const Entry& entry : entries_) {
    const ConfigNode* node = FindValue(config, entry.key.path, problems);
    if (node == nullptr) continue;
    const std::string path = JoinPath("config", entry.key.path);
    CheckValue(*node, path, entry.type, problems);
    for (size_t i = 0; entry.type == ValueType::kList && i < node->items().size(); ++i) {
      CheckValue(node->items()[i], JoinPath(path, absl::StrCat(i)), entry.element_type, problems);
    }
  }
}

std::vector<UnsupportedKey> CompatibilityKeys::Unsupported(const ConfigNode& config) const {
  std::vector<UnsupportedKey> unsupported;
  for (const Entry& entry : entries_) {
    if (entry.key.support != CompatibilityKey::Support::kNotYet) continue;
    const ConfigNode* node = config.FindPath(entry.key.path);
    if (node == nullptr || SameValue(entry.default_value, *node)) continue;
    unsupported.push_back({entry.key.path, node->location(), node->Describe(), entry.key.note});
  }
  std::stable_sort(unsupported.begin(), unsupported.end(), [](const UnsupportedKey& left, const UnsupportedKey& right) {
    return std::tie(left.location.file, left.location.line) < std::tie(right.location.file, right.location.line);
  });
  return unsupported;
}

absl::Status DeclaredOnce(const std::vector<std::string>& common_paths) {
  if (common_paths.empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrJoin(common_paths, "\n", [](std::string* text, const std::string& path) {
    absl::StrAppend(text, "option catalog: key '", path, "' is declared twice");
  }));
}

}  // namespace ssl
