// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: the stream is a pure function of (seed, epoch, sample, view,
// operation), so an augmentation does not depend on threads, batch size or resume point.
// The generator is Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC'11). Integer results are equal on every platform. A value type, cheap to make
// (two hashes); one object belongs to one thread.
//
//   CounterRandom random(seed, epoch, sample_index, view, /*operation=*/kRandomCrop);
//   const double scale = random.Uniform(0.08, 1.0);

#ifndef SSL_BASE_RANDOM_H_
#define SSL_BASE_RANDOM_H_

#include <array>
#include <cstdint>

namespace ssl {

// One block of Philox4x32-10; counter and key are in little-endian word order, as in the
// known-answer vectors of the Random123 distribution.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class CounterRandom {
 public:
  CounterRandom(uint64_t seed, uint64_t epoch, uint64_t sample, uint64_t view, uint64_t operation);

  // 32 uniform bits.
  uint32_t Next();
  // In [0, 1), with 53 bits; uses two words.
  double Uniform();
  // In [lo, hi); lo when hi <= lo.
  double Uniform(double lo, double hi);
  // In [lo, hi], both inclusive, without bias; lo when hi <= lo.
  int64_t UniformInt(int64_t lo, int64_t hi);
  // True with probability p: never for p <= 0, always for p >= 1.
  bool Bernoulli(double p);

 private:
  uint64_t Next64();

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;  // words 0-1 count blocks, words 2-3 name the stream
  std::array<uint32_t, 4> block_ = {};
  int used_ = 4;  // words of block_ that were given out
};

}  // namespace ssl

#endif  // SSL_BASE_RANDOM_H_
