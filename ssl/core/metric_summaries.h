// SPDX-License-Identifier: Apache-2.0
//
// What a report holds of whole tensors: histograms and images.
#ifndef SSL_CORE_METRIC_SUMMARIES_H_
#define SSL_CORE_METRIC_SUMMARIES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ssl/core/metric_report.h"
#include "ssl/core/tensor_fwd.h"

namespace ssl {

inline constexpr int64_t kHistogramBins = 64;

// values: of any shape and number type. 64 bins of one width between the smallest and the largest element; where these
// are equal, from 0.5 below to 0.5 above. Waits for the device; vectorized passes over the tensor, which stays on its
// device.
MetricHistogram MakeHistogram(const at::Tensor& values);

// pixels: [height, width, 3], 8-bit; copied. InvalidArgument for another shape or type.
absl::StatusOr<MetricImage> MakeImage(const at::Tensor& pixels);

}  // namespace ssl

#endif  // SSL_CORE_METRIC_SUMMARIES_H_
