// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/error_detail.h"

#include "absl/strings/cord.h"

namespace ssl {

absl::Status WithDetail(absl::Status status, absl::string_view key, absl::string_view value) {
  status.SetPayload(key, absl::Cord(value));
  return status;
}

std::string DetailOf(const absl::Status& status, absl::string_view key) {
  const auto payload = status.GetPayload(key);
  return payload.has_value() ? std::string(*payload) : "";
}

}  // namespace ssl
