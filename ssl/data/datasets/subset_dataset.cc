// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/subset_dataset.h"

#include <numeric>
#include <random>
#include <utility>

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

}  // namespace

std::vector<int64_t> DrawSubset(int64_t size, int64_t count, int64_t skip, uint32_t seed) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator(seed);
  for (int64_t i = size - 1; i > 0; --i) {
    std::swap(order[i], order[MaskedDraw(generator, static_cast<uint32_t>(i))]);
  }
  return std::vector<int64_t>(order.begin() + skip, order.begin() + skip + count);
}

SubsetDataset::SubsetDataset(std::unique_ptr<Dataset> dataset, std::vector<int64_t> positions)
    : dataset_(std::move(dataset)), positions_(std::move(positions)) {}

}  // namespace ssl
