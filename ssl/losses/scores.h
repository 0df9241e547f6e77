// SPDX-License-Identifier: Apache-2.0
//
// What losses do with scores first. Pure; any thread.
#ifndef SSL_LOSSES_SCORES_H_
#define SSL_LOSSES_SCORES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ssl {

// The same values in float32, or float64 when they are that: losses do not round to the short types of autocast.
at::Tensor FullPrecision(const at::Tensor& values);

// rows: [B, C]. Each row over its Euclidean length (at least 1e-12), as torch.nn.functional.normalize.
at::Tensor UnitRows(const at::Tensor& rows);

// values: [N, ...]. Returns [numbers, ...], the entries of these numbers in their order, as index_select; without a
// tensor of numbers, which each call would copy to the device.
at::Tensor SelectEntries(const at::Tensor& values, const std::vector<int64_t>& numbers);

}  // namespace ssl

#endif  // SSL_LOSSES_SCORES_H_
