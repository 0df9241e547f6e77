// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/inspection/difference_hash.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/image/crop_box.h"

namespace ssl {
namespace {

constexpr int kRows = DifferenceHash::kRows;
constexpr int kColumns = DifferenceHash::kColumns;
constexpr int kBits = DifferenceHash::kBits;
// Of the largest to the smallest grey value: an image with less has no structure to tell it by.
constexpr int kLeastContrast = 8;
constexpr double kLeastCorrelation = 0.98;
constexpr size_t kReportedAtOnce = 64;

// ITU-R BT.601.
uint8_t Luma(const uint8_t* pixel, int channels) {
  if (channels == 1) return pixel[0];
  return static_cast<uint8_t>((77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2] + 128) >> 8);
}

// Pearson's; both have some contrast.
double Correlation(const DifferenceHash& a, const DifferenceHash& b) {
  constexpr double kCount = kRows * kColumns;
  double sum_a = 0;
  double sum_b = 0;
  double squares_a = 0;
  double squares_b = 0;
  double products = 0;
  for (int i = 0; i < kRows * kColumns; ++i) {
    const double x = a.grey[i];
    const double y = b.grey[i];
    sum_a += x;
    sum_b += y;
    squares_a += x * x;
    squares_b += y * y;
    products += x * y;
  }
  const double variance_a = squares_a - sum_a * sum_a / kCount;
  const double variance_b = squares_b - sum_b * sum_b / kCount;
  return (products - sum_a * sum_b / kCount) / std::sqrt(variance_a * variance_b);
}

// Which sets of positions are joined, as a forest of parents.
class DisjointSets {
 public:
  explicit DisjointSets(int64_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), int64_t{0}); }

  int64_t Root(int64_t position) {
    while (parents_[position] != position) position = parents_[position] = parents_[parents_[position]];
    return position;
  }

  // The smaller root stays, so that a set is named by its first position.
  void Join(int64_t a, int64_t b) {
    a = Root(a);
    b = Root(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int64_t> parents_;
};

using KeyedHash = std::pair<uint64_t, int64_t>;  // a band of the bits, and the position

// Joins what agrees in the band and looks alike. report: called with how many of `sorted` have been compared.
absl::Status JoinBand(const std::vector<KeyedHash>& sorted, const std::vector<DifferenceHash>& hashes, int distance,
                      absl::FunctionRef<void(int64_t)> report, const StopToken* stop, DisjointSets* sets) {
  for (size_t begin = 0; begin < sorted.size(); ++begin) {
    if (stop != nullptr && stop->requested()) return absl::CancelledError("near duplicates: stopped");
    if (begin % kReportedAtOnce == 0) report(static_cast<int64_t>(begin));
    const auto [band, first] = sorted[begin];
    for (size_t i = begin + 1; i < sorted.size() && sorted[i].first == band; ++i) {
      const int64_t second = sorted[i].second;
      if (LooksLike(hashes[first], hashes[second], distance)) sets->Join(first, second);
    }
  }
  return absl::OkStatus();
}

// Joins equal hashes in one pass. Returns one position for each distinct hash: a thousand copies would cost a million
// comparisons in each band.
std::vector<int64_t> JoinEqual(const std::vector<DifferenceHash>& hashes, DisjointSets* sets) {
  std::vector<int64_t> order(hashes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::tie(hashes[a].bits, hashes[a].grey) < std::tie(hashes[b].bits, hashes[b].grey);
  });
  std::vector<int64_t> distinct;
  for (const int64_t position : order) {
    if (!distinct.empty() && hashes[distinct.back()] == hashes[position]) {
      sets->Join(distinct.back(), position);
    } else {
      distinct.push_back(position);
    }
  }
  return distinct;
}

}  // namespace

std::optional<DifferenceHash> ComputeDifferenceHash(const Image& image, Resampler* resampler) {
  Image small;
  resampler->CropAndResize(image, {0, 0, image.height(), image.width()}, kRows, kColumns, &small);
  DifferenceHash hash;
  for (int i = 0; i < kRows * kColumns; ++i) {
    hash.grey[i] = Luma(small.pixels() + i * small.channels(), small.channels());
  }
  const auto [least, largest] = std::minmax_element(hash.grey.begin(), hash.grey.end());
  if (*largest - *least < kLeastContrast) return std::nullopt;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column + 1 < kColumns; ++column) {
      const uint8_t* left = &hash.grey[row * kColumns + column];
      hash.bits = hash.bits << 1 | (left[1] > left[0] ? 1 : 0);
    }
  }
  return hash;
}

bool LooksLike(const DifferenceHash& a, const DifferenceHash& b, int distance) {
  return __builtin_popcountll(a.bits ^ b.bits) <= distance && Correlation(a, b) >= kLeastCorrelation;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> GroupLookalikes(const std::vector<DifferenceHash>& hashes,
                                                                  int distance,
                                                                  const std::function<void(int64_t done)>& on_progress,
                                                                  const StopToken* stop) {
  DisjointSets sets(static_cast<int64_t>(hashes.size()));
  const std::vector<int64_t> distinct = JoinEqual(hashes, &sets);
  const int bands = distance + 1;
  const auto report = [&](int64_t compared) {  // of all bands
    const double share = static_cast<double>(compared) / (static_cast<double>(distinct.size()) * bands);
    if (on_progress) on_progress(std::llround(share * static_cast<double>(hashes.size())));
  };
  std::vector<KeyedHash> sorted(distinct.size());
  for (int band = 0; band < bands; ++band) {
    const int begin = kBits * band / bands;
    const int width = kBits * (band + 1) / bands - begin;
    const uint64_t mask = width == kBits ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    for (size_t i = 0; i < distinct.size(); ++i) sorted[i] = {hashes[distinct[i]].bits >> begin & mask, distinct[i]};
    std::sort(sorted.begin(), sorted.end());
    const int64_t compared = static_cast<int64_t>(distinct.size()) * band;
    const auto report_band = [&](int64_t begin) { report(compared + begin); };
    SSL_RETURN_IF_ERROR(JoinBand(sorted, hashes, distance, report_band, stop, &sets));
  }
  if (on_progress) on_progress(static_cast<int64_t>(hashes.size()));
  std::map<int64_t, std::vector<int64_t>> members;  // by root
  for (int64_t i = 0; i < static_cast<int64_t>(hashes.size()); ++i) members[sets.Root(i)].push_back(i);
  std::vector<std::vector<int64_t>> groups;
  for (auto& [root, positions] : members) {
    if (positions.size() > 1) groups.push_back(std::move(positions));
  }
  return groups;
}

}  // namespace ssl
