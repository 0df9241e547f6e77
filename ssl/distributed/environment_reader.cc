// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/environment_reader.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ssl {

std::optional<std::string> ProcessVariable(absl::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

absl::Status EnvironmentReader::Error(absl::string_view name, absl::string_view expected) const {
  const std::optional<std::string> value = variable_(name);
  const std::string found = value.has_value() ? absl::StrCat("\"", *value, "\"") : "not set";
  return absl::InvalidArgumentError(absl::StrCat("environment: ", name, " is ", found, ", expected ", expected));
}

absl::StatusOr<std::string> EnvironmentReader::Text(absl::string_view name) const {
  std::optional<std::string> value = variable_(name);
  if (!value.has_value() || value->empty()) return Error(name, "a text that is not empty");
  return *std::move(value);
}

absl::StatusOr<int64_t> EnvironmentReader::Integer(absl::string_view name, int64_t least, int64_t most,
                                                   absl::string_view reason) const {
  const std::optional<std::string> value = variable_(name);
  int64_t number = 0;
  const bool is_plain = value.has_value() && value->find_first_not_of("-0123456789") == std::string::npos;
  if (is_plain && absl::SimpleAtoi(*value, &number) && number >= least && number <= most) return number;
  return Error(name, absl::StrCat("an integer from ", least, " to ", most, reason.empty() ? "" : " ", reason));
}

absl::StatusOr<int64_t> EnvironmentReader::IntegerOr(absl::string_view name, int64_t least, int64_t most,
                                                     int64_t fallback) const {
  if (!Has(name)) return fallback;
  return Integer(name, least, most);
}

}  // namespace ssl
