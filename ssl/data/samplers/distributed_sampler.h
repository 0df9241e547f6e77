// SPDX-License-Identifier: Apache-2.0
//
// The order of torch.utils.data.DistributedSampler (PyTorch 2.11), for the same seed: a permutation by LibTorch's CPU
// generator seeded with seed + epoch, made divisible by the number of ranks, of which rank r takes every world-th
// element from r on. Golden test: distributed_sampler_test.
#ifndef SSL_DATA_SAMPLERS_DISTRIBUTED_SAMPLER_H_
#define SSL_DATA_SAMPLERS_DISTRIBUTED_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "ssl/data/sampler.h"

namespace ssl {

struct DistributedSamplerOptions {
  int64_t dataset_size = 0;  // >= 1
  int64_t world_size = 1;
  int64_t rank = 0;
  int64_t seed = 0;
  bool shuffle = true;
  // What makes the order divisible by the world: dropping the tail (true) or repeating the head (false).
  bool drop_last = false;
};

class DistributedSampler : public Sampler {
 public:
  explicit DistributedSampler(const DistributedSamplerOptions& options) : options_(options) {}

  int64_t size() const override;
  std::vector<int64_t> Indices(int64_t epoch) const override;

 private:
  DistributedSamplerOptions options_;
};

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_DISTRIBUTED_SAMPLER_H_
