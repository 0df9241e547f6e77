// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/parallel_for.h"

#include <ATen/Parallel.h>

#ifndef _OPENMP
#error "Without OpenMP, at::parallel_for is a loop on one thread."
#endif

namespace ssl {

void ParallelFor(int64_t count, absl::FunctionRef<void(int64_t first, int64_t last)> body) {
  at::parallel_for(0, count, /*grain_size=*/1, body);
}

}  // namespace ssl
