// SPDX-License-Identifier: Apache-2.0
//
// Keeps count of pictures that cannot be read. A few are a nuisance that must not end a run of days; many mean that a
// path or a disk is wrong. Thread-safe.
#ifndef SSL_DATA_DATASETS_BROKEN_PICTURES_H_
#define SSL_DATA_DATASETS_BROKEN_PICTURES_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace ssl {

class BrokenPictures {
 public:
  // Among the first kWindow pictures that are read, fewer when the data set is smaller, at most max_fraction may be
  // broken. place: the key that says so, for messages.
  static constexpr int64_t kWindow = 1000;
  BrokenPictures(int64_t dataset_size, double max_fraction, std::string place);

  // A picture was read.
  void AddGood() { read_.fetch_add(1, std::memory_order_relaxed); }

  // A picture was not, for `reason`, which names it. Warns of the first few, then of the 10th, 100th, 1000th, ...
  // DataLoss when these are too many.
  absl::Status AddBroken(const absl::Status& reason);

  int64_t broken() const { return broken_.load(std::memory_order_relaxed); }

 private:
  const int64_t window_;
  const double max_fraction_;
  const std::string place_;
  std::atomic<int64_t> read_{0};  // good and broken
  std::atomic<int64_t> broken_{0};
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_BROKEN_PICTURES_H_
