// SPDX-License-Identifier: Apache-2.0
//
// Average precision of each class, with interpolated precision: the area under the envelope of the precision-recall
// curve (Everingham et al., PASCAL VOC 2010, section 3.4.1).
//
//   AP = 1/P sum over positives i of  max over ranks r >= rank(i) of  (positives up to r) / (known samples up to r)
#ifndef SSL_METERS_AVERAGE_PRECISION_H_
#define SSL_METERS_AVERAGE_PRECISION_H_

#include <ATen/core/Tensor.h>

namespace ssl {

// scores: [N, C] floating. targets: [N, C] integer: 1, 0, or -1 for unknown, which is left out. Equal scores rank in
// the order of the samples. Returns [C] float64, -1 for a class without positives. Does not wait for the device. May
// throw LibTorch exceptions.
at::Tensor AveragePrecision(const at::Tensor& scores, const at::Tensor& targets);

}  // namespace ssl

#endif  // SSL_METERS_AVERAGE_PRECISION_H_
