// SPDX-License-Identifier: Apache-2.0
//
// Keeps count of images that cannot be read. A few are a nuisance that must not end a run of days; many mean that a
// path or a disk is wrong. Each image counts once, however often it is read, so that the numbers depend neither on the
// threads nor on how many epochs a run has. Takes a byte for each image. Thread-safe.
#ifndef SSL_DATA_DATASETS_BROKEN_IMAGES_H_
#define SSL_DATA_DATASETS_BROKEN_IMAGES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/data/read_fault.h"

namespace ssl {

// Whether an error of reading a file is the process's, not the file's: no descriptor or memory left. It says nothing
// about the image.
bool IsErrorOfProcess(const absl::Status& reason);

// How many of `images` may be broken where the share max_fraction of them may. Above 0, one always may: of nine test
// images, one is more than a tenth.
double MostBroken(double max_fraction, int64_t images);

class BrokenImages {
 public:
  // Among the first kWindow images that are read, fewer when the data set is smaller, MostBroken may be broken, and at
  // any time, unless max_fraction is 1, kMostInARow reads in a row: when more fail, the disk is gone, and grey images
  // would be learned. place: the key that says so, for messages. reader: who reads, where others read other images of
  // the data set: "rank 1 of 2"; "": nobody else.
  static constexpr int64_t kWindow = 1000;
  static constexpr int64_t kMostInARow = 100;
  BrokenImages(int64_t dataset_size, double max_fraction, std::string place, std::string reader = "");
  // Of the data set only so many images are ever read, at least 1. Called before any is.
  void WillRead(int64_t images) { window_ = std::min(window_, images); }

  // Logs Summary when there is something to tell.
  ~BrokenImages();
  BrokenImages(const BrokenImages&) = delete;
  BrokenImages& operator=(const BrokenImages&) = delete;

  // Image `index` was read.
  void AddGood(int64_t index);

  // Image `index` was not, for `reason`, which names it, and which is a `fault` (not kNone). Warns of the first few,
  // then of the 10th, 100th, 1000th, ... DataLoss when these are too many. An error that is the process's, not the
  // image's (no descriptor or memory left), is returned as it is and counts for nothing.
  absl::Status AddBroken(int64_t index, ReadFault fault, const absl::Status& reason);

  int64_t broken() const { return broken_.load(std::memory_order_relaxed); }

  // "5 of 300 images cannot be read and were replaced: 2 missing, 3 damaged", after "rank 1 of 2: " where others read.
  std::string Summary() const;

 private:
  absl::Status CountBroken(bool is_first_read, ReadFault fault, const absl::Status& reason);

  enum State : uint8_t { kUnread, kGood, kBroken };

  int64_t window_;
  const double max_fraction_;
  const std::string place_;
  const std::string reader_;
  std::vector<std::atomic<uint8_t>> states_;  // of each image
  std::atomic<int64_t> read_{0};              // good and broken
  std::atomic<int64_t> broken_{0};
  std::atomic<int64_t> in_a_row_{0};  // reads that failed since the last good one, repeated ones too
  std::array<std::atomic<int64_t>, kNumReadFaults> faults_{};
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_BROKEN_IMAGES_H_
