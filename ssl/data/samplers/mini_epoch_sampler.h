// SPDX-License-Identifier: Apache-2.0
//
// Visits a part of the data set in each epoch: M mini-epochs together visit all of it (United Perception's `mini_epoch`
// with its hook `reload`). For data sets of which a whole pass would take too long between two reports or checkpoints.
//
// An order of all N samples holds for M epochs. Of W ranks each has r = ceil(N / (W M)) samples in one of them:
// mini-epoch m takes the places [m r W, (m + 1) r W) of the order, which goes on with its own head where it is too
// short, and rank k the k-th block of r. The order is drawn by LibTorch's CPU generator, seeded with seed + 1000 + the
// number of whole passes so far, as there; within `groups` contiguous blocks of the data set, so that a rank reads
// neighbouring files.
#ifndef SSL_DATA_SAMPLERS_MINI_EPOCH_SAMPLER_H_
#define SSL_DATA_SAMPLERS_MINI_EPOCH_SAMPLER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ssl/data/sampler.h"

namespace ssl {

struct MiniEpochSamplerOptions {
  int64_t dataset_size = 0;  // >= 1
  int64_t world_size = 1;
  int64_t rank = 0;
  int64_t seed = 0;
  int64_t mini_epochs = 1;
  int64_t groups = 1;
  // The mini-epoch, counted from the beginning of the training, of each epoch that the sampler is asked for: test
  // phases count as epochs and visit nothing. Empty: each epoch is one.
  std::vector<int64_t> mini_epoch_of = {};
};

class MiniEpochSampler : public Sampler {
 public:
  explicit MiniEpochSampler(MiniEpochSamplerOptions options) : options_(std::move(options)) {}

  int64_t size() const override;
  std::vector<int64_t> Indices(int64_t epoch) const override;

 private:
  std::vector<int64_t> Order(int64_t pass) const;

  const MiniEpochSamplerOptions options_;
};

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_MINI_EPOCH_SAMPLER_H_
