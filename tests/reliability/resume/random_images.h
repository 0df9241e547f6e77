// SPDX-License-Identifier: Apache-2.0
//
// Batches for runs that are interrupted, repeated or disturbed: ten to an epoch, of four images of 3 x 8 x 8.
#ifndef SSL_TESTS_RELIABILITY_RESUME_RANDOM_IMAGES_H_
#define SSL_TESTS_RELIABILITY_RESUME_RANDOM_IMAGES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"

namespace ssl {

// Random images in `views` views, with labels from 0 to 2; which, depends on rank, phase and batch alone.
class RandomImages : public BatchSource {
 public:
  RandomImages(int64_t views, int64_t rank, int64_t world_size);

  int64_t batches_per_epoch() const override;
  int64_t dataset_size() const override;
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override;
  absl::StatusOr<const Batch*> Next() override;

 private:
  const int64_t views_;
  const int64_t rank_;
  const int64_t world_size_;
  int64_t epoch_ = 0;
  int64_t next_ = 0;
  Batch batch_;
};

}  // namespace ssl

#endif  // SSL_TESTS_RELIABILITY_RESUME_RANDOM_IMAGES_H_
