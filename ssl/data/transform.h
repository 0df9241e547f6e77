// SPDX-License-Identifier: Apache-2.0
//
// One entry of TRANSFORMS: changes the views of a sample, in place.
//
// Transforms are immutable and shared by all worker threads. Randomness comes from the context alone, whose streams
// depend on (seed, epoch, sample, view, operation), so the result does not depend on threads, batches or a resume.
#ifndef SSL_DATA_TRANSFORM_H_
#define SSL_DATA_TRANSFORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/base/random.h"
#include "ssl/data/image.h"
#include "ssl/data/resample.h"
#include "ssl/data/sample.h"

namespace ssl {

// Buffers that a worker thread keeps between samples.
struct TransformScratch {
  Image image;
  Resampler resampler;
};

// Where a transform runs. Lives during one Apply.
struct TransformContext {
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t sample = 0;     // index in the data set
  uint64_t operation = 0;  // position in TRANSFORMS
  TransformScratch& scratch;

  CounterRandom Random(int view) const { return CounterRandom(seed, epoch, sample, view, operation); }
};

class Transform {
 public:
  virtual ~Transform() = default;

  // The name in TRANSFORMS.
  virtual absl::string_view name() const = 0;
  virtual absl::Status Apply(const TransformContext& context, Sample* sample) const = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORM_H_
