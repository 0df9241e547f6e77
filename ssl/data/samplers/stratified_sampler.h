// SPDX-License-Identifier: Apache-2.0
//
// Batches of equally many samples of a few classes each (VISSL's StratifiedClassSampler, STRATIFIED_SAMPLER): the
// classes come in a random order, `classes` of them to a batch, until there are not enough left; then in another order.
// Within a batch the classes alternate: a b c a b c ... Orders are drawn by LibTorch's CPU generator and are VISSL's
// for the same seed (stratified_sampler_test).
#ifndef SSL_DATA_SAMPLERS_STRATIFIED_SAMPLER_H_
#define SSL_DATA_SAMPLERS_STRATIFIED_SAMPLER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ssl/data/sampler.h"
#include "ssl/data/samplers/class_index.h"

namespace ssl {

struct StratifiedSamplerOptions {
  ClassIndex class_index;
  int64_t world_size = 1;
  int64_t rank = 0;
  int64_t seed = 0;
  int64_t classes = 2;  // of a rank's batch: at most class_index.size(), of all ranks together when unique
  // Of each class in a batch; at most a class's samples, divided by world_size unless unique.
  int64_t samples_per_class = 1;
  // Each rank has classes of its own in a batch, from all their samples; else all ranks have the same classes, and each
  // a part of their samples.
  bool unique = false;
  int64_t passes = 1;  // over the classes, in an epoch
};

class StratifiedSampler : public Sampler {
 public:
  explicit StratifiedSampler(StratifiedSamplerOptions options) : options_(std::move(options)) {}

  // Batches of a pass over the classes.
  int64_t batches_per_pass() const;

  int64_t size() const override;
  std::vector<int64_t> Indices(int64_t epoch) const override;

 private:
  // Which classes a batch has: changes from batch to batch.
  class ClassOrder;

  // The samples of each class on this rank, in the order of that pass.
  ClassIndex SamplesOfPass(int64_t epoch, int64_t pass) const;

  const StratifiedSamplerOptions options_;
};

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_STRATIFIED_SAMPLER_H_
