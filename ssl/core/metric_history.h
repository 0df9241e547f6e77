// SPDX-License-Identifier: Apache-2.0
//
// The last values of one metric, each with its iteration (fvcore's HistoryBuffer). Bounded: the oldest value makes room
// for the newest. Used by one thread.
//
//   MetricHistory history(1000);
//   history.Add(0.5, 1);
//   history.Median(history.CountAfter(iteration - 20));   // over the last 20 iterations
#ifndef SSL_CORE_METRIC_HISTORY_H_
#define SSL_CORE_METRIC_HISTORY_H_

#include <cstdint>
#include <vector>

namespace ssl {

struct MetricObservation {
  double value = 0.0;
  int64_t iteration = 0;
};

// Median, Mean and Latest are of a history that is not empty; `last` counts observations from the newest one back, and
// is cut to [1, size()].
class MetricHistory {
 public:
  // capacity: how many observations are kept, at least 1.
  explicit MetricHistory(int64_t capacity) : capacity_(capacity) {}

  // Iterations do not fall. A value may be NaN or infinite.
  void Add(double value, int64_t iteration);

  int64_t size() const { return static_cast<int64_t>(ring_.size()); }
  const MetricObservation& Latest() const { return FromNewest(0); }
  // age: 0 is the newest, size() - 1 the oldest.
  const MetricObservation& FromNewest(int64_t age) const;

  // How many of the kept observations are of later iterations than this one.
  int64_t CountAfter(int64_t iteration) const;

  // Of an even count, the mean of the two in the middle; NaN when one of them is NaN.
  double Median(int64_t last) const;
  double Mean(int64_t last) const;
  // Over everything that was ever added, kept or not.
  double GlobalMean() const { return global_mean_; }

 private:
  std::vector<double> Values(int64_t last) const;

  const int64_t capacity_;
  std::vector<MetricObservation> ring_;
  int64_t added_ = 0;
  double global_mean_ = 0.0;
};

}  // namespace ssl

#endif  // SSL_CORE_METRIC_HISTORY_H_
