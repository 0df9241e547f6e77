// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/broken_images.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr int64_t kFirstCount = 10;

// A part of `images` is judged by some images more: where a tenth of n is broken, the standard deviation of the number
// of broken ones is 0.3 sqrt(n), and 9 sqrt(n) images more allow three times that.
int64_t WithMargin(int64_t images) {
  return images + static_cast<int64_t>(9.0 * std::sqrt(static_cast<double>(images)));
}

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

struct BrokenImages::Count {
  Count(int64_t dataset_size, double fraction, std::string key, std::string who, std::string of)
      : size(dataset_size),
        most_read(dataset_size),
        max_fraction(fraction),
        place(std::move(key)),
        reader(std::move(who)),
        split(std::move(of)) {}
  ~Count();

  absl::Status AddBroken(bool is_first_read, ReadFault fault, const absl::Status& reason);
  std::string Summary() const;

  int64_t size;
  int64_t most_read;
  bool in_order = false;
  const double max_fraction;
  const std::string place;
  const std::string reader;
  const std::string split;
  std::shared_ptr<NamedFiles> named = std::make_shared<NamedFiles>();
  std::string source;            // by which `named` knows it
  std::atomic<int64_t> read{0};  // good and broken
  std::atomic<int64_t> broken{0};
  std::atomic<int64_t> in_a_row{0};
  std::array<std::atomic<int64_t>, kNumReadFaults> faults{};
};

BrokenImages::Count::~Count() {
  const bool was_tried_alone = read.load(std::memory_order_relaxed) == 1;
  if (broken.load(std::memory_order_relaxed) > 0 && !was_tried_alone) SSL_LOG(WARNING) << Summary();
}

absl::Status BrokenImages::Count::AddBroken(bool is_first_read, ReadFault fault, const absl::Status& reason) {
  const int64_t most_judged = in_order ? size : kWindow;
  const int64_t window = std::min(most_read, most_judged);
  const int64_t judged = std::min({WithMargin(most_read), size, most_judged});
  const double most_broken = MostBroken(max_fraction, judged);
  const int64_t so_far = read.fetch_add(is_first_read ? 1 : 0, std::memory_order_relaxed) + (is_first_read ? 1 : 0);
  const int64_t failed = broken.fetch_add(1, std::memory_order_relaxed) + 1;
  faults[static_cast<int>(fault)].fetch_add(1, std::memory_order_relaxed);
  if (so_far <= window && static_cast<double>(failed) > most_broken) {
    const std::string margin =
        judged > window ? absl::StrCat(", ", static_cast<int64_t>(most_broken), " with a margin for chance") : "";
    return absl::DataLossError(absl::StrCat(failed, " of the first ", so_far, " images cannot be read, but ", place,
                                            " allows a share of ", max_fraction, " of the first ", window, margin,
                                            "; the last one: ", reason.message()));
  }
  if (named->Add(source, reason.message())) {
    SSL_LOG(WARNING) << "image cannot be read and is replaced: " << reason.message();
  } else if (failed >= kFirstCount && IsPowerOfTen(failed)) {
    SSL_LOG(WARNING) << Summary();
  }
  return absl::OkStatus();
}

std::string BrokenImages::Count::Summary() const {
  std::vector<std::string> parts;
  for (const ReadFault fault : kKindsOfBroken) {
    const int64_t count = faults[static_cast<int>(fault)].load(std::memory_order_relaxed);
    if (count > 0) parts.push_back(absl::StrCat(count, " ", ReadFaultName(fault)));
  }
  const int64_t tried = read.load(std::memory_order_relaxed);
  return absl::StrCat(reader.empty() ? "this process" : reader, " tried ", tried, tried == 1 ? " image" : " images",
                      split.empty() ? "" : " of ", split, ", ", broken.load(std::memory_order_relaxed),
                      " of which cannot be read: ", absl::StrJoin(parts, ", "));
}

BrokenImages::BrokenImages(int64_t dataset_size, double max_fraction, std::string place, std::string reader,
                           std::string split)
    : states_(static_cast<size_t>(dataset_size)),
      count_(
          std::make_shared<Count>(dataset_size, max_fraction, std::move(place), std::move(reader), std::move(split))) {}

BrokenImages::~BrokenImages() = default;

void BrokenImages::NameOnce(std::shared_ptr<NamedFiles> files, std::string source) {
  count_->named = std::move(files);
  count_->source = std::move(source);
}

void BrokenImages::Join(BrokenImages* first) {
  first->count_->size += count_->size;
  first->count_->most_read += count_->most_read;
  count_ = first->count_;
}

void BrokenImages::WillRead(int64_t images) { count_->most_read = std::min(count_->most_read, images); }

void BrokenImages::WillReadInOrder() { count_->in_order = true; }

void BrokenImages::AddGood(int64_t index) {
  // Threads that read good images share the line until one fails.
  for (std::atomic<int64_t>* row : {&in_a_row_, &count_->in_a_row}) {
    if (row->load(std::memory_order_relaxed) > 0) row->store(0, std::memory_order_relaxed);
  }
  uint8_t unread = kUnread;
  if (states_[index].compare_exchange_strong(unread, kGood, std::memory_order_relaxed)) {
    count_->read.fetch_add(1, std::memory_order_relaxed);
  }
}

absl::Status BrokenImages::AddBroken(int64_t index, ReadFault fault, const absl::Status& reason) {
  if (IsErrorOfProcess(reason)) return reason;
  const absl::Status row = CheckRow(reason);
  const uint8_t before = states_[index].exchange(kBroken, std::memory_order_relaxed);
  if (before != kBroken) SSL_RETURN_IF_ERROR(count_->AddBroken(before == kUnread, fault, reason));
  return row;
}

// Counts the read, too.
absl::Status BrokenImages::CheckRow(const absl::Status& reason) {
  const int64_t of_all = count_->in_a_row.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t own = in_a_row_.fetch_add(1, std::memory_order_relaxed) + 1;
  const double max_fraction = count_->max_fraction;
  const bool may_all_break = static_cast<double>(states_.size()) <= MostBroken(max_fraction, count_->size);
  const int64_t in_a_row = may_all_break ? of_all : std::max(of_all, own);
  if (in_a_row <= kMostInARow || max_fraction >= 1.0 || count_->in_order) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the last ", in_a_row, in_a_row > of_all ? " images of one source" : " images",
                   " could not be read (", count_->place, "=1 would go on): ", reason.message()));
}

int64_t BrokenImages::broken() const { return count_->broken.load(std::memory_order_relaxed); }

std::string BrokenImages::Summary() const { return count_->Summary(); }

}  // namespace ssl
