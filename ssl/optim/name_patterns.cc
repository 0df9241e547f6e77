// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/name_patterns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

constexpr char kPatternCharacters[] = "^$*+?()[]{}|\\";

}  // namespace

absl::StatusOr<NamePatterns> NamePatterns::Make(const std::vector<std::string>& entries) {
  NamePatterns patterns;
  for (const std::string& entry : entries) {
    if (entry.find_first_of(kPatternCharacters) == std::string::npos) {
      patterns.parts_.push_back(entry);
      continue;
    }
    auto pattern = std::make_unique<const RE2>(entry, RE2::Quiet);
    if (!pattern->ok()) {
      return absl::InvalidArgumentError(absl::StrCat("'", entry, "' is no RE2 pattern: ", pattern->error()));
    }
    patterns.patterns_.push_back(std::move(pattern));
  }
  return patterns;
}

bool NamePatterns::Match(const std::string& name) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const std::string& part) { return absl::StrContains(name, part); }) ||
         std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const auto& pattern) { return RE2::PartialMatch(name, *pattern); });
}

}  // namespace ssl
