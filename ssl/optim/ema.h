// SPDX-License-Identifier: Apache-2.0
//
// Exponential moving averages of weights, many tensors per operation: average = decay average + (1 - decay) value.
#ifndef SSL_OPTIM_EMA_H_
#define SSL_OPTIM_EMA_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace ssl {

// averages, values: parallel lists of equal shapes; pass the same lists in every step. float32 averages move towards
// their values, tensors of another type (counters of normalisation layers) become copies. decay: in [0, 1]. In place,
// without a gradient graph; allocates nothing when all tensors are float32. Thread-safe for different tensors. May
// throw LibTorch exceptions. VISSL's ModelEmaV2, DINO's teacher; pinned by tests/golden (ema, op model_ema).
void EmaUpdate(const std::vector<at::Tensor>& averages, const std::vector<at::Tensor>& values, double decay);

}  // namespace ssl

#endif  // SSL_OPTIM_EMA_H_
