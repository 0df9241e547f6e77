// SPDX-License-Identifier: Apache-2.0
//
// From the floats of a batch back to the pixels that they were made of. Immutable; may throw LibTorch exceptions.
#ifndef SSL_ENGINES_DENORMALIZER_H_
#define SSL_ENGINES_DENORMALIZER_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"

namespace ssl {

class Denormalizer {
 public:
  // transforms: the list that made the batches, whose Normalize is undone.
  static absl::StatusOr<Denormalizer> Create(const ConfigNode& transforms);

  // images: [B, C, H, W]. Returns the same in [0, 1]: exactly v / 255 of what was an 8-bit value v.
  at::Tensor ToUnit(const at::Tensor& images) const;

  // images: [B, C, H, W]. Returns [B, H, W, C] uint8; values beyond black and white, as RandomErasing makes them, are
  // cut off there.
  at::Tensor ToPixels(const at::Tensor& images) const;

 private:
  Denormalizer(at::Tensor mean, at::Tensor std, double white);

  at::Tensor mean_;  // [1, C, 1, 1]
  at::Tensor std_;   // [1, C, 1, 1]
  double white_;     // before Normalize: 1, or 255 of raw tensors
};

}  // namespace ssl

#endif  // SSL_ENGINES_DENORMALIZER_H_
