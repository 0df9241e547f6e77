// SPDX-License-Identifier: Apache-2.0
//
// What metric sinks consume: plain data, without LibTorch.
#ifndef SSL_CORE_METRIC_REPORT_H_
#define SSL_CORE_METRIC_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

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

// 8-bit RGB, rows from the top, pixels from the left.
struct MetricImage {
  int64_t height = 0;
  int64_t width = 0;
  std::string pixels;  // height * width * 3 bytes
};

// What was measured at one moment of training. Names are paths: "Training/Loss".
struct MetricReport {
  int64_t iteration = 0;  // updates done
  int64_t epoch = 0;
  std::map<std::string, double> values;
  std::map<std::string, MetricHistogram> histograms = {};
  std::map<std::string, MetricImage> images = {};
};

// Consumes reports: console, JSON lines, TensorBoard. Owned by the MetricStore.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual absl::Status Write(const MetricReport& report) = 0;
  // Makes everything written so far durable.
  virtual absl::Status Flush() = 0;
  // Where it writes, such as a folder in which two sinks of a kind would tell everything twice; "" when that does not
  // matter. A store has one sink for each place.
  virtual std::string place() const { return ""; }
};

}  // namespace ssl

#endif  // SSL_CORE_METRIC_REPORT_H_
