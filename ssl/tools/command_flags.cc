// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/command_flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr char kBool[] = "bool";
constexpr char kInteger[] = "int64";
constexpr char kAll[] = "all";

bool IsFlag(absl::string_view argument) { return argument.size() > 1 && argument[0] == '-'; }

// Not those that libraries bring along.
std::vector<std::string> OwnFlags() {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  std::vector<std::string> names = {"help"};
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (absl::StrContains(flag.filename, "ssl/tools/")) names.push_back(flag.name);
  }
  return names;
}

absl::Status UnknownFlag(const std::string& name) {
  if (name == "engine_name" || absl::StartsWith(name, "config.")) {
    return absl::InvalidArgumentError(
        absl::StrCat("command line: unknown flag '--", name, "'; keys have no dashes: ", name, "=VALUE"));
  }
  const std::string nearest = NearestName(name, OwnFlags());
  return absl::InvalidArgumentError(absl::StrCat(
      "command line: unknown flag '--", name, "'",
      nearest.empty() ? "" : absl::StrCat("; did you mean '--", nearest, "'?"), "; ssl_main --help lists them"));
}

// Of its value.
std::string Expected(const gflags::CommandLineFlagInfo& flag) {
  return absl::StrCat(flag.type == kInteger ? "an integer: " : "a value: ",
                      flag.type == kBool ? "true or false" : flag.description);
}

class FlagParser {
 public:
  FlagParser(const std::vector<std::string>& arguments, const std::vector<std::string>& optional_values)
      : arguments_(arguments), optional_values_(optional_values) {}

  absl::StatusOr<std::vector<std::string>> Run() {
    for (; next_ < arguments_.size(); ++next_) {
      const std::string& argument = arguments_[next_];
      if (argument == "--") {
        rest_.insert(rest_.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(next_) + 1, arguments_.end());
        break;
      }
      if (IsFlag(argument)) {
        SSL_RETURN_IF_ERROR(Set(argument));
      } else {
        rest_.push_back(argument);
      }
    }
    return std::move(rest_);
  }

 private:
  absl::Status Set(absl::string_view argument) {
    absl::ConsumePrefix(&argument, "-");
    absl::ConsumePrefix(&argument, "-");
    const std::pair<std::string, std::string> sides = absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const std::string& name = sides.first;
    const bool has_value = absl::StrContains(argument, '=');
    gflags::CommandLineFlagInfo flag;
    if (gflags::GetCommandLineFlagInfo(name.c_str(), &flag)) {
      SSL_ASSIGN_OR_RETURN(const std::string value,
                           has_value ? absl::StatusOr<std::string>(sides.second) : ImpliedValue(flag));
      return SetValue(flag, value);
    }
    const std::string positive(absl::StripPrefix(name, "no"));
    if (!has_value && positive != name && gflags::GetCommandLineFlagInfo(positive.c_str(), &flag) &&
        flag.type == kBool) {
      return SetValue(flag, "false");
    }
    return UnknownFlag(name);
  }

  // Of a flag without "=".
  absl::StatusOr<std::string> ImpliedValue(const gflags::CommandLineFlagInfo& flag) {
    if (flag.type == kBool) return std::string("true");
    const auto& optional = optional_values_;
    if (std::find(optional.begin(), optional.end(), flag.name) != optional.end()) return std::string(kAll);
    if (next_ + 1 < arguments_.size()) return arguments_[++next_];
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --", flag.name, " lacks its value (", flag.description, ")"));
  }

  absl::Status SetValue(const gflags::CommandLineFlagInfo& flag, const std::string& value) {
    const auto [given, is_first] = given_.emplace(flag.name, value);
    if (!is_first && given->second != value) {
      return absl::InvalidArgumentError(absl::StrCat("command line: --", flag.name, " is given twice, as '",
                                                     given->second, "' and as '", value, "', expected one of them"));
    }
    if (!value.empty() && !gflags::SetCommandLineOption(flag.name.c_str(), value.c_str()).empty()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --", flag.name, " is '", value, "', expected ", Expected(flag)));
  }

  const std::vector<std::string>& arguments_;
  const std::vector<std::string>& optional_values_;
  size_t next_ = 0;
  std::vector<std::string> rest_;
  std::map<std::string, std::string> given_;  // values by flag
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseFlags(const std::vector<std::string>& arguments,
                                                    const std::vector<std::string>& optional_values) {
  return FlagParser(arguments, optional_values).Run();
}

}  // namespace ssl
