// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/broken_images.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int64_t kNamed = 5;

bool IsPowerOfTen(int64_t value) {
  while (value >= 10 && value % 10 == 0) value /= 10;
  return value == 1;
}

}  // namespace

bool IsErrorOfProcess(const absl::Status& reason) {
  const std::string number = DetailOf(reason, kDetailErrno);
  return number == absl::StrCat(EMFILE) || number == absl::StrCat(ENFILE) || number == absl::StrCat(ENOMEM);
}

double MostBroken(double max_fraction, int64_t images) {
  return max_fraction > 0.0 ? std::max(1.0, max_fraction * static_cast<double>(images)) : 0.0;
}

BrokenImages::BrokenImages(int64_t dataset_size, double max_fraction, std::string place, std::string reader)
    : window_(std::min(dataset_size, kWindow)),
      max_fraction_(max_fraction),
      place_(std::move(place)),
      reader_(std::move(reader)),
      states_(static_cast<size_t>(dataset_size)) {}

BrokenImages::~BrokenImages() {
  if (broken() > 0) SSL_LOG(WARNING) << Summary();
}

void BrokenImages::AddGood(int64_t index) {
  // Threads that read good images share the line until one fails.
  if (in_a_row_.load(std::memory_order_relaxed) > 0) in_a_row_.store(0, std::memory_order_relaxed);
  uint8_t unread = kUnread;
  if (states_[index].compare_exchange_strong(unread, kGood, std::memory_order_relaxed)) {
    read_.fetch_add(1, std::memory_order_relaxed);
  }
}

absl::Status BrokenImages::AddBroken(int64_t index, ReadFault fault, const absl::Status& reason) {
  if (IsErrorOfProcess(reason)) return reason;
  const int64_t in_a_row = in_a_row_.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint8_t before = states_[index].exchange(kBroken, std::memory_order_relaxed);
  if (before != kBroken) SSL_RETURN_IF_ERROR(CountBroken(before == kUnread, fault, reason));
  if (in_a_row <= kMostInARow || max_fraction_ >= 1.0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the last ", in_a_row, " images could not be read (", place_,
                                          "=1 would go on): ", reason.message()));
}

absl::Status BrokenImages::CountBroken(bool is_first_read, ReadFault fault, const absl::Status& reason) {
  const int64_t read = read_.fetch_add(is_first_read ? 1 : 0, std::memory_order_relaxed) + (is_first_read ? 1 : 0);
  const int64_t broken = broken_.fetch_add(1, std::memory_order_relaxed) + 1;
  faults_[static_cast<int>(fault)].fetch_add(1, std::memory_order_relaxed);
  if (read <= window_ && static_cast<double>(broken) > MostBroken(max_fraction_, window_)) {
    return absl::DataLossError(absl::StrCat(broken, " of the first ", read, " images cannot be read, but ", place_,
                                            " allows a share of ", max_fraction_, " of the first ", window_,
                                            "; the last one: ", reason.message()));
  }
  if (broken <= kNamed) {
    SSL_LOG(WARNING) << "image cannot be read and is replaced: " << reason.message();
  } else if (IsPowerOfTen(broken)) {
    SSL_LOG(WARNING) << Summary();
  }
  return absl::OkStatus();
}

std::string BrokenImages::Summary() const {
  std::vector<std::string> parts;
  for (const ReadFault fault : kKindsOfBroken) {
    const int64_t count = faults_[static_cast<int>(fault)].load(std::memory_order_relaxed);
    if (count > 0) parts.push_back(absl::StrCat(count, " ", ReadFaultName(fault)));
  }
  return absl::StrCat(reader_, reader_.empty() ? "" : ": ", broken(), " of ", read_.load(std::memory_order_relaxed),
                      " images cannot be read and were replaced: ", absl::StrJoin(parts, ", "));
}

}  // namespace ssl
