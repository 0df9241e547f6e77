// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/collective_check.h"

#include <cstdint>
#include <string>
#include <utility>

#include "ssl/base/status_util.h"

namespace ssl {

CollectiveError::CollectiveError(absl::Status status)
    : c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, std::string(status.message())),
      status_(std::move(status)) {}

void CheckCollective(const absl::Status& status, absl::string_view what) {
  if (!status.ok()) throw CollectiveError(Annotate(status, what));
}

}  // namespace ssl
