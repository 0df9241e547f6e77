// SPDX-License-Identifier: Apache-2.0
//
// A list of parameter names to look for: an entry without any of ^ $ * + ? ( ) [ ] { } | \ is a part of the name
// ("bn1", "layer4.1"; a point is a point), any other an RE2 pattern that matches somewhere in it ("\.bias$",
// "blocks\.[0-3]\."). Immutable; thread-safe.
#ifndef SSL_OPTIM_NAME_PATTERNS_H_
#define SSL_OPTIM_NAME_PATTERNS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "re2/re2.h"

namespace ssl {

class NamePatterns {
 public:
  // InvalidArgument quotes the pattern that RE2 cannot read, with RE2's reason.
  static absl::StatusOr<NamePatterns> Make(const std::vector<std::string>& entries);

  // True when any entry is found in `name`.
  bool Match(const std::string& name) const;

 private:
  std::vector<std::string> parts_;
  std::vector<std::unique_ptr<const RE2>> patterns_;
};

}  // namespace ssl

#endif  // SSL_OPTIM_NAME_PATTERNS_H_
