// SPDX-License-Identifier: Apache-2.0
//
// Each rank has a slice of the data set that is its own: of N samples and W ranks, rank r has the floor(N / W) samples
// from r * floor(N / W) on. In order (VISSL's DeterministicDistributedSampler, USE_DEBUGGING_SAMPLER), or permuted by
// LibTorch's CPU generator seeded with seed + epoch (VISSL's StatefulDistributedSampler,
// USE_STATEFUL_DISTRIBUTED_SAMPLER). Golden test: samplers_golden_test.
#ifndef SSL_DATA_SAMPLERS_SLICE_SAMPLER_H_
#define SSL_DATA_SAMPLERS_SLICE_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "ssl/data/sampler.h"

namespace ssl {

struct SliceSamplerOptions {
  int64_t dataset_size = 0;
  int64_t world_size = 1;
  int64_t rank = 0;
  int64_t seed = 0;
  bool shuffle = true;
};

class SliceSampler : public Sampler {
 public:
  explicit SliceSampler(const SliceSamplerOptions& options) : options_(options) {}

  int64_t size() const override { return options_.dataset_size / options_.world_size; }
  std::vector<int64_t> Indices(int64_t epoch) const override;

 private:
  SliceSamplerOptions options_;
};

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_SLICE_SAMPLER_H_
