// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/broken_pictures.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"

namespace ssl {
namespace {

constexpr int64_t kNamed = 5;

bool IsPowerOfTen(int64_t value) {
  while (value >= 10 && value % 10 == 0) value /= 10;
  return value == 1;
}

}  // namespace

BrokenPictures::BrokenPictures(int64_t dataset_size, double max_fraction, std::string place)
    : window_(std::min(dataset_size, kWindow)), max_fraction_(max_fraction), place_(std::move(place)) {}

absl::Status BrokenPictures::AddBroken(const absl::Status& reason) {
  const int64_t read = read_.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t broken = broken_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (read <= window_ && static_cast<double>(broken) > max_fraction_ * static_cast<double>(window_)) {
    return absl::DataLossError(absl::StrCat(broken, " of the first ", read, " pictures cannot be read, but ", place_,
                                            " allows a share of ", max_fraction_, " of the first ", window_,
                                            "; the last one: ", reason.message()));
  }
  if (broken <= kNamed) {
    SSL_LOG(WARNING) << "picture cannot be read and is replaced: " << reason.message();
  } else if (IsPowerOfTen(broken)) {
    SSL_LOG(WARNING) << broken << " of " << read << " pictures could not be read and were replaced";
  }
  return absl::OkStatus();
}

}  // namespace ssl
