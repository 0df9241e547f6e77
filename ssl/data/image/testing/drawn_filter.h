// SPDX-License-Identifier: Apache-2.0
//
// Filters and pixels drawn from a seed, for the tests of both passes of a resampling.
#ifndef SSL_DATA_IMAGE_TESTING_DRAWN_FILTER_H_
#define SSL_DATA_IMAGE_TESTING_DRAWN_FILTER_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "ssl/data/image/resample_passes.h"

namespace ssl {

inline int Draw(std::mt19937_64* random, int least, int most) {
  return std::uniform_int_distribution<int>(least, std::max(least, most))(*random);
}

inline std::vector<uint8_t> DrawBytes(std::mt19937_64* random, int64_t size) {
  std::vector<uint8_t> bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<uint8_t>(Draw(random, 0, 255)); });
  return bytes;
}

// Owns what FilterTaps points to.
struct DrawnFilter {
  int in, out, taps;
  std::vector<int> first;
  std::vector<int32_t> weights;

  FilterTaps Taps() const { return {in, out, taps, first.data(), weights.data()}; }
};

// Weights of both signs whose absolute values add up to at most 1.25, as those of a cubic. first_of(x, most): where the
// window of x begins, of 0 ... most.
template <typename FirstOf>
DrawnFilter DrawFilterAt(std::mt19937_64* random, int in, int out, int taps, const FirstOf& first_of) {
  DrawnFilter filter = {in, out, std::min(taps, in), {}, {}};
  for (int x = 0; x < out; ++x) filter.first.push_back(first_of(x, in - filter.taps));
  const int most = static_cast<int>(1.25 * (1 << kWeightBits) / filter.taps);
  for (int i = 0; i < out * filter.taps; ++i) filter.weights.push_back(Draw(random, -most, most));
  return filter;
}

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_TESTING_DRAWN_FILTER_H_
