// SPDX-License-Identifier: Apache-2.0
//
// The order in which a rank visits the data set. Immutable; the order depends on the epoch alone.
#ifndef SSL_DATA_SAMPLER_H_
#define SSL_DATA_SAMPLER_H_

#include <cstdint>
#include <vector>

namespace ssl {

class Sampler {
 public:
  virtual ~Sampler() = default;

  // Samples per epoch on this rank.
  virtual int64_t size() const = 0;
  // Exactly size() positions in the data set. May throw LibTorch exceptions.
  virtual std::vector<int64_t> Indices(int64_t epoch) const = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_SAMPLER_H_
