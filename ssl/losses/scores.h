// SPDX-License-Identifier: Apache-2.0
//
// What losses do with scores first. Pure; any thread.
#ifndef SSL_LOSSES_SCORES_H_
#define SSL_LOSSES_SCORES_H_

#include <ATen/core/Tensor.h>

namespace ssl {

// The same values in float32, or float64 when they are that: losses do not round to the short types of autocast.
at::Tensor FullPrecision(const at::Tensor& values);

// rows: [B, C]. Each row over its Euclidean length (at least 1e-12), as torch.nn.functional.normalize.
at::Tensor UnitRows(const at::Tensor& rows);

}  // namespace ssl

#endif  // SSL_LOSSES_SCORES_H_
