// SPDX-License-Identifier: Apache-2.0
#include "tests/scaling/scaling_model.h"

#include <algorithm>
#include <cmath>

namespace ssl {
namespace {

constexpr double kFloatBytes = 4.0;
constexpr double kDoubleBytes = 8.0;
constexpr int64_t kControlOperations = 2;
constexpr double kControlBytes = 24.0;

// By how many standard deviations the largest of `ranks` normal values lies above their mean (Blom 1958).
double ExpectedMaximum(int64_t ranks) {
  const double probability = (static_cast<double>(ranks) - 0.375) / (static_cast<double>(ranks) + 0.25);
  // The quantile of the normal distribution by bisection.
  double low = -10.0;
  double high = 10.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2.0;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return ranks == 1 ? 0.0 : low;
}

// Bytes of a batch norm's sums over ranks: two for each channel, and forward the number of values.
double MomentBytes(int64_t channels) { return kDoubleBytes * (2.0 * static_cast<double>(channels) + 1.0); }

// Walks through an update. Parts between two operations that all ranks wait in belong to one stretch, whose noise
// adds up by squares; with the operation, the slowest rank's stretch counts.
class Walk {
 public:
  Walk(const Cluster& cluster, const Workload& workload)
      : cluster_(cluster), workload_(workload), slowest_(ExpectedMaximum(cluster.ranks())) {}

  UpdateForecast Run() {
    Forward();
    Sinkhorn();
    Backward();
    Compute(workload_.update);
    for (int64_t i = 0; i < kControlOperations; ++i) WaitIn(kControlBytes, &forecast_.control);
    return forecast_;
  }

 private:
  void Compute(double seconds) {
    forecast_.compute += seconds;
    now_ += seconds;
    variance_ += std::pow(workload_.noise * seconds, 2);
  }

  void EndStretch() {
    const double waiting = slowest_ * std::sqrt(variance_);
    forecast_.waiting += waiting;
    now_ += waiting;
    variance_ = 0.0;
  }

  void WaitIn(double bytes, double* account) {
    EndStretch();
    const double seconds = AllReduceSeconds(cluster_, bytes);
    *account += seconds;
    now_ += seconds;
  }

  void Pass(const Part& part, double seconds) {
    Compute(seconds);
    if (workload_.sync_batch_norm && part.channels > 0) WaitIn(MomentBytes(part.channels), &forecast_.batch_norm);
  }

  void Forward() {
    for (const Part& part : workload_.trunk) Pass(part, part.large);
    for (const Part& part : workload_.trunk) Pass(part, part.small);
    for (const Part& part : workload_.head) Pass(part, part.large);
  }

  // The largest score, the sum, and the sums of each iteration, of two crops together.
  void Sinkhorn() {
    WaitIn(2.0 * kFloatBytes, &forecast_.sinkhorn);
    WaitIn(2.0 * kFloatBytes, &forecast_.sinkhorn);
    for (int64_t i = 0; i < workload_.sinkhorn_iterations; ++i) {
      WaitIn(2.0 * kFloatBytes * static_cast<double>(workload_.prototypes), &forecast_.sinkhorn);
    }
  }

  // Gradients of the trunk are there after the pass of the large crops, which is the last.
  void Backward() {
    buckets_ = BucketBytes(workload_);
    PassBack(
        workload_.head, [](const Part& part) { return part.large; }, true);
    PassBack(
        workload_.trunk, [](const Part& part) { return part.small; }, false);
    PassBack(
        workload_.trunk, [](const Part& part) { return part.large; }, true);
    // Here all ranks meet.
    const double before = now_;
    EndStretch();
    const double waited = now_ - before;
    const double exposed = std::max(0.0, reduced_ - before);
    forecast_.gradients += exposed;
    now_ = before + exposed + waited;
  }

  template <typename Time>
  void PassBack(const std::vector<Part>& parts, Time time, bool has_gradients) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      Pass(*part, workload_.backward * time(*part));
      if (has_gradients) Arrive(part->elements * 4);
    }
  }

  // A bucket's reduction begins when its last gradient is there and the one before it has ended.
  void Arrive(int64_t bytes) {
    arrived_ += bytes;
    const bool is_last = bucket_ + 1 == buckets_.size();
    const int64_t tail = is_last ? 4 * static_cast<int64_t>(workload_.trunk.size() + workload_.head.size()) : 0;
    if (arrived_ + tail < buckets_[bucket_]) return;
    const double seconds = AllReduceSeconds(cluster_, static_cast<double>(buckets_[bucket_]));
    reduced_ = std::max(reduced_, now_) + seconds;
    forecast_.all_gradients += seconds;
    arrived_ = 0;
    ++bucket_;
  }

  const Cluster& cluster_;
  const Workload& workload_;
  const double slowest_;
  UpdateForecast forecast_;
  double now_ = 0.0;
  double variance_ = 0.0;
  std::vector<int64_t> buckets_;
  size_t bucket_ = 0;
  int64_t arrived_ = 0;
  double reduced_ = 0.0;
};

}  // namespace

UpdateForecast ForecastUpdate(const Cluster& cluster, const Workload& workload) {
  return Walk(cluster, workload).Run();
}

}  // namespace ssl
