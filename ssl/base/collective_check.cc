// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/collective_check.h"

#include <c10/util/Exception.h>

namespace ssl {

void CheckCollective(const absl::Status& status, absl::string_view what) {
  TORCH_CHECK_WITH(DistBackendError, status.ok(), what, ": ", status.ToString());
}

}  // namespace ssl
