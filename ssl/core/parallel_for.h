// SPDX-License-Identifier: Apache-2.0
//
// Loops of our own over LibTorch's threads. Only parallel_for.cc is compiled with OpenMP: at::parallel_for in another
// file compiles, and is serial.
#ifndef SSL_CORE_PARALLEL_FOR_H_
#define SSL_CORE_PARALLEL_FOR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace ssl {

// Calls body(first, last) for parts that make up 0 to count, one for each of at::get_num_threads() threads at most, and
// returns when all have ended; within a body, or with one thread, in one call. The first exception of a body is thrown
// on. A body that makes sums must not add up by parts: they depend on the number of threads.
void ParallelFor(int64_t count, absl::FunctionRef<void(int64_t first, int64_t last)> body);

}  // namespace ssl

#endif  // SSL_CORE_PARALLEL_FOR_H_
