// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/same_value.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"

namespace ssl {
namespace {

bool IsEmpty(const ConfigNode& node) { return node.text().empty() && node.items().empty() && node.entries().empty(); }

bool SameScalar(const ConfigNode& left, const ConfigNode& right) {
  if (left.text() == right.text()) return true;
  const absl::StatusOr<double> left_number = left.AsDouble();
  const absl::StatusOr<double> right_number = right.AsDouble();
  if (left_number.ok() && right_number.ok()) return *left_number == *right_number;
  const absl::StatusOr<bool> left_bool = left.AsBool();
  const absl::StatusOr<bool> right_bool = right.AsBool();
  return left_bool.ok() && right_bool.ok() && *left_bool == *right_bool;
}

}  // namespace

bool SameValue(const ConfigNode& left, const ConfigNode& right) {
  if (IsEmpty(left) && IsEmpty(right)) return true;
  if (left.kind() != right.kind() || left.items().size() != right.items().size() ||
      left.entries().size() != right.entries().size()) {
    return false;
  }
  if (left.is_scalar()) return SameScalar(left, right);
  for (size_t i = 0; i < left.items().size(); ++i) {
    if (!SameValue(left.items()[i], right.items()[i])) return false;
  }
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const ConfigNode::Entry& entry) {
    const ConfigNode* other = right.Find(entry.first);
    return other != nullptr && SameValue(entry.second, *other);
  });
}

}  // namespace ssl
