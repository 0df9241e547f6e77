// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/batch_source.h"

namespace ssl {

absl::StatusOr<std::vector<int64_t>> BatchSource::Classes() const {
  return absl::UnimplementedError("this source of batches cannot tell which classes occur in it");
}

}  // namespace ssl
