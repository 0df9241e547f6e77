// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metric_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ssl {

void MetricHistory::Add(double value, int64_t iteration) {
  if (size() < capacity_) {
    ring_.push_back({value, iteration});
  } else {
    ring_[added_ % capacity_] = {value, iteration};
  }
  ++added_;
  // A running mean: a sum would lose the digits of small values in long runs.
  global_mean_ += (value - global_mean_) / static_cast<double>(added_);
}

const MetricObservation& MetricHistory::FromNewest(int64_t age) const { return ring_[(added_ - 1 - age) % capacity_]; }

int64_t MetricHistory::CountAfter(int64_t iteration) const {
  int64_t count = 0;
  while (count < size() && FromNewest(count).iteration > iteration) ++count;
  return count;
}

std::vector<double> MetricHistory::Values(int64_t last) const {
  const int64_t count = std::clamp<int64_t>(last, 1, size());
  std::vector<double> values(count);
  for (int64_t age = 0; age < count; ++age) values[age] = FromNewest(age).value;
  return values;
}

double MetricHistory::Median(int64_t last) const {
  std::vector<double> values = Values(last);
  // NaN has no order; a median that passed over it would hide it.
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto upper = values.begin() + static_cast<int64_t>(values.size()) / 2;
  std::nth_element(values.begin(), upper, values.end());
  if (values.size() % 2 == 1) return *upper;
  return 0.5 * (*std::max_element(values.begin(), upper) + *upper);
}

double MetricHistory::Mean(int64_t last) const {
  const std::vector<double> values = Values(last);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace ssl
