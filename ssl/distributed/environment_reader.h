// SPDX-License-Identifier: Apache-2.0
//
// Values of environment variables, checked. Every error is InvalidArgument and names the variable, its value and what
// was expected. Thread-safe as long as no thread changes the environment.
#ifndef SSL_DISTRIBUTED_ENVIRONMENT_READER_H_
#define SSL_DISTRIBUTED_ENVIRONMENT_READER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ssl {

inline constexpr int64_t kMostPort = 65535;

// The value of an environment variable; nothing when it is not set.
using EnvironmentVariable = std::function<std::optional<std::string>(absl::string_view name)>;

// Of this process.
std::optional<std::string> ProcessVariable(absl::string_view name);

class EnvironmentReader {
 public:
  explicit EnvironmentReader(EnvironmentVariable variable) : variable_(std::move(variable)) {}

  bool Has(absl::string_view name) const { return variable_(name).has_value(); }

  // Not empty.
  absl::StatusOr<std::string> Text(absl::string_view name) const;

  // In digits alone, from `least` to `most`; `reason` is added to what was expected, such as "(WORLD_SIZE is 4)".
  absl::StatusOr<int64_t> Integer(absl::string_view name, int64_t least, int64_t most,
                                  absl::string_view reason = "") const;
  // `fallback` when the variable is not set.
  absl::StatusOr<int64_t> IntegerOr(absl::string_view name, int64_t least, int64_t most, int64_t fallback) const;

  // "environment: NAME is "VALUE", expected ..."; "is not set" when it is not.
  absl::Status Error(absl::string_view name, absl::string_view expected) const;

 private:
  EnvironmentVariable variable_;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_ENVIRONMENT_READER_H_
