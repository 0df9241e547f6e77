// SPDX-License-Identifier: Apache-2.0
//
// Counts what tensor code computes, by watching the operators that it calls.
//
//   const OperationCount count = CountOperations([&] { model.Forward({view}); });
//
// Watched are convolutions and matrix products: aten::convolution, mm, addmm, bmm and baddbmm, which linear, matmul
// and einsum call. Shapes decide, so a convolution that is written as a matrix product counts as that product, with
// its zeros, and one by Winograd's filtering as what its definition multiplies. Other operations (norms, pooling,
// additions) are not counted.
#ifndef SSL_HOOKS_OPERATION_COUNT_H_
#define SSL_HOOKS_OPERATION_COUNT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace ssl {

struct OperationCount {
  int64_t multiply_adds = 0;
  int64_t activations = 0;  // values that the watched operators return
};

// Runs `function`, whose exceptions pass. Counts calls on this thread alone; calls may not be nested.
OperationCount CountOperations(absl::FunctionRef<void()> function);

}  // namespace ssl

#endif  // SSL_HOOKS_OPERATION_COUNT_H_
