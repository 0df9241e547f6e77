// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/subset_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

// A uniform number in [0, max] as NumPy's legacy generator draws it: words masked to the bits of `max`, until one fits.
uint32_t MaskedDraw(std::mt19937& generator, uint32_t max) {
  uint32_t mask = max;
  for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
  uint32_t value = generator() & mask;
  while (value > max) value = generator() & mask;
  return value;
}

// numpy.random.RandomState.shuffle.
void Shuffle(std::mt19937& generator, std::vector<int64_t>* values) {
  for (size_t i = values->size(); i-- > 1;) {
    std::swap((*values)[i], (*values)[MaskedDraw(generator, static_cast<uint32_t>(i))]);
  }
}

// Part `part` of `total` things that are spread over `parts`.
int64_t Share(int64_t total, int64_t part, int64_t parts) { return total / parts + (part < total % parts ? 1 : 0); }

}  // namespace

std::vector<int64_t> DrawSubset(int64_t size, int64_t count, int64_t skip, uint32_t seed) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator(seed);
  Shuffle(generator, &order);
  return std::vector<int64_t>(order.begin() + skip, order.begin() + skip + count);
}

absl::StatusOr<std::vector<int64_t>> DrawBalancedSubset(const std::vector<int64_t>& labels, int64_t count, int64_t skip,
                                                        uint32_t seed) {
  std::map<int64_t, std::vector<int64_t>> classes;  // class -> its samples
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("sample ", i, " has no class, expected one to balance classes"));
    }
    classes[labels[i]].push_back(static_cast<int64_t>(i));
  }
  const auto num_classes = static_cast<int64_t>(classes.size());
  std::mt19937 generator(seed);
  std::vector<int64_t> drawn;
  int64_t number = 0;
  for (auto& [label, samples] : classes) {
    const int64_t first = Share(skip, number, num_classes);
    const int64_t end = first + Share(count, number, num_classes);
    ++number;
    if (end > static_cast<int64_t>(samples.size())) {
      return absl::InvalidArgumentError(absl::StrCat("class ", label, " has ", samples.size(), " samples, but ", end,
                                                     " are needed to draw ", count, " and skip ", skip,
                                                     " with equally many of each of ", num_classes, " classes"));
    }
    Shuffle(generator, &samples);
    drawn.insert(drawn.end(), samples.begin() + first, samples.begin() + end);
  }
  return drawn;
}

std::vector<int64_t> DrawHeldOut(const std::vector<int64_t>& labels, double fraction, uint32_t seed, bool held_out) {
  std::map<int64_t, std::vector<int64_t>> classes;  // class -> its samples
  for (size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(static_cast<int64_t>(i));
  std::mt19937 generator(seed);
  std::vector<int64_t> drawn;
  for (auto& [label, samples] : classes) {
    Shuffle(generator, &samples);
    const auto size = static_cast<int64_t>(samples.size());
    const int64_t wanted = std::max<int64_t>(1, std::llround(static_cast<double>(size) * fraction));
    const auto border = samples.begin() + std::min(wanted, size - 1);
    drawn.insert(drawn.end(), held_out ? samples.begin() : border, held_out ? border : samples.end());
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

SubsetDataset::SubsetDataset(std::unique_ptr<Dataset> dataset, std::vector<int64_t> positions)
    : dataset_(std::move(dataset)), positions_(std::move(positions)) {
  if (!positions_.empty()) dataset_->WillRead(size());
}

}  // namespace ssl
