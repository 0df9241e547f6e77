// SPDX-License-Identifier: Apache-2.0
//
// What a report holds of whole tensors: histograms and images.
#ifndef SSL_CORE_METRIC_SUMMARIES_H_
#define SSL_CORE_METRIC_SUMMARIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/tensor_fwd.h"

namespace ssl {

// How the finite elements of a tensor are distributed.
struct MetricHistogram {
  double min = 0.0;
  double max = 0.0;
  int64_t count = 0;
  double sum = 0.0;
  double sum_of_squares = 0.0;
  // Bin i holds the elements in [edges[i], edges[i + 1]), the last one also those equal to its upper edge.
  std::vector<double> edges;   // one more than bins; empty when there is no element
  std::vector<double> counts;  // of each bin
};

inline constexpr int64_t kHistogramBins = 64;

// values: of any shape and number type. 64 bins of one width between the smallest and the largest element; where these
// are equal, from 0.5 below to 0.5 above. Waits for the device; vectorized passes over the tensor, which stays on its
// device.
MetricHistogram MakeHistogram(const at::Tensor& values);

// 8-bit RGB, rows from the top, pixels from the left.
struct MetricImage {
  int64_t height = 0;
  int64_t width = 0;
  std::string pixels;  // height * width * 3 bytes
};

// pixels: [height, width, 3], 8-bit; copied. InvalidArgument for another shape or type.
absl::StatusOr<MetricImage> MakeImage(const at::Tensor& pixels);

}  // namespace ssl

#endif  // SSL_CORE_METRIC_SUMMARIES_H_
