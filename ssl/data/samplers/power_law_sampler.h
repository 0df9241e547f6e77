// SPDX-License-Identifier: Apache-2.0
//
// Classes in unequal parts, to see what a long tail does (VISSL's ClassPowerlawSampler, POWER_LAW_SAMPLER): the i-th
// class of a random order is drawn with a probability proportional to 1 / (1 + i)^power. A negative power stands for
// drawing each class in proportion to the square root of its share of the data. A batch has the drawn samples of one
// class side by side; they differ as long as the rank's part of the class has enough.
//
// The order of the classes is VISSL's for the same seed; the draws are our own (there they are not seeded), equal in
// distribution.
#ifndef SSL_DATA_SAMPLERS_POWER_LAW_SAMPLER_H_
#define SSL_DATA_SAMPLERS_POWER_LAW_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "ssl/data/sampler.h"
#include "ssl/data/samplers/class_index.h"

namespace ssl {

struct PowerLawSamplerOptions {
  ClassIndex class_index;
  int64_t world_size = 1;
  int64_t rank = 0;
  int64_t seed = 0;
  int64_t batch_size = 1;  // of a rank
  double power = 1.0;
};

class PowerLawSampler : public Sampler {
 public:
  explicit PowerLawSampler(PowerLawSamplerOptions options);

  // Whole batches of one pass over the data.
  int64_t size() const override;
  std::vector<int64_t> Indices(int64_t epoch) const override;

  // By class; their sum is 1.
  const std::vector<double>& probabilities() const { return probabilities_; }

 private:
  const PowerLawSamplerOptions options_;
  int64_t dataset_size_ = 0;
  std::vector<double> probabilities_;
};

}  // namespace ssl

#endif  // SSL_DATA_SAMPLERS_POWER_LAW_SAMPLER_H_
