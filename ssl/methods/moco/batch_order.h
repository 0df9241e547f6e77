// SPDX-License-Identifier: Apache-2.0
//
// A random order of the images of a batch over all ranks, for the shuffled batch normalisation of MoCo (arXiv
// 1911.05722, section 3.3). It follows from the run's seed and the place of the batch in the run: all ranks have the
// same order without telling each other, and a resumed run goes on with the same one. Pure; any thread.
#ifndef SSL_METHODS_MOCO_BATCH_ORDER_H_
#define SSL_METHODS_MOCO_BATCH_ORDER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ssl {

// phase, batch: TrainState's phase_index and batch_in_phase. Returns a permutation of 0 ... count - 1, int64 [count].
at::Tensor BatchOrder(int64_t count, int64_t seed, int64_t phase, int64_t batch);

}  // namespace ssl

#endif  // SSL_METHODS_MOCO_BATCH_ORDER_H_
