// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ssl {

namespace {

// All digits of a whole number: 1048576, not 1.04858e+06.
std::string Text(double bound) { return absl::StrFormat("%.15g", bound); }

}  // namespace

Doc& Doc::Between(double low, double high) {
  low_ = low;
  high_ = high;
  return *this;
}

Doc& Doc::AtLeast(double low) {
  low_ = low;
  return *this;
}

Doc& Doc::Above(double low) {
  low_ = low;
  low_is_exclusive_ = true;
  return *this;
}

Doc& Doc::OneOf(std::vector<std::string> names) {
  names_ = std::move(names);
  return *this;
}

Doc& Doc::Unit(absl::string_view unit) {
  unit_ = std::string(unit);
  return *this;
}

Doc& Doc::MayChange() {
  may_change_ = true;
  return *this;
}

Doc& Doc::MayBeOne() {
  may_be_one_ = true;
  return *this;
}

bool Doc::Allows(double value) const {
  if (low_.has_value() && (low_is_exclusive_ ? value <= *low_ : value < *low_)) return false;
  return !high_.has_value() || value <= *high_;
}

bool Doc::Allows(absl::string_view value) const {
  return names_.empty() || std::find(names_.begin(), names_.end(), value) != names_.end();
}

std::string Doc::Range() const {
  if (!names_.empty()) return absl::StrCat("one of '", absl::StrJoin(names_, "', '"), "'");
  if (!low_.has_value()) return unit_.empty() ? "" : absl::StrCat("(", unit_, ")");
  const std::string unit = unit_.empty() ? "" : absl::StrCat(" (", unit_, ")");
  if (high_.has_value()) return absl::StrCat("between ", Text(*low_), " and ", Text(*high_), unit);
  return absl::StrCat(low_is_exclusive_ ? "above " : "at least ", Text(*low_), unit);
}

std::string Doc::Expected(absl::string_view noun) const {
  if (!names_.empty()) return Range();
  const bool has_lower_end_only = low_.has_value() && !high_.has_value() && !low_is_exclusive_;
  const std::string range = Range();
  return absl::StrCat(noun, range.empty() ? "" : " ", has_lower_end_only ? "of " : "", range);
}

}  // namespace ssl
