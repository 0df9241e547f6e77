// SPDX-License-Identifier: Apache-2.0
//
// The operations that RandAugment (https://arxiv.org/abs/1909.13719) and AutoAugment (https://arxiv.org/abs/1805.09501)
// choose from, with the scales of VISSL, which are timm's, and Pillow's pixels. A level in [0, 10] says how strong an
// operation is; its direction, where it has two, and the interpolation of one that moves pixels are drawn.
#ifndef SSL_DATA_TRANSFORMS_AUGMENT_OPERATIONS_H_
#define SSL_DATA_TRANSFORMS_AUGMENT_OPERATIONS_H_

#include "absl/strings/string_view.h"
#include "ssl/base/random.h"
#include "ssl/data/image/image.h"
#include "ssl/data/transform_scratch.h"

namespace ssl {

struct AugmentOperation;  // one of a fixed table

// Names as "ShearX", "PosterizeIncreasing"; null for another one.
const AugmentOperation* FindAugmentOperation(absl::string_view name);

// An operation that is carried out with a probability, at a level drawn around a magnitude.
struct AugmentStep {
  const AugmentOperation* operation = nullptr;
  double probability = 0.5;
  double magnitude = 10.0;
  double magnitude_std = 0.0;  // of a normal distribution; the level is cut to [0, 10]
};

// image: as the viewer will see it, mirrored already.
void ApplyAugmentStep(const AugmentStep& step, CounterRandom& random, TransformScratch& scratch, Image* image);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_AUGMENT_OPERATIONS_H_
