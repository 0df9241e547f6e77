// SPDX-License-Identifier: Apache-2.0
//
// From the floats of a batch back to the pixels that they were made of. Immutable; may throw LibTorch exceptions.
#ifndef SSL_DATA_LOADER_DENORMALIZER_H_
#define SSL_DATA_LOADER_DENORMALIZER_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/data/image/pixel_table.h"

namespace ssl {

// Whether every view becomes floats in the same way: no transform that makes or changes floats is for some views
// (`indices`), or carried out by chance (ImgPilMultiCropRandomApply). Otherwise nobody knows what a view of a batch has
// gone through, whose views a collator may have joined.
bool TreatsViewsAlike(const ConfigNode& transforms);

class Denormalizer {
 public:
  // transforms: the list that made the batches, whose Normalize and conversion to floats are undone. It
  // TreatsViewsAlike.
  static absl::StatusOr<Denormalizer> Create(const ConfigNode& transforms);

  // images: [B, C, H, W]. Returns the same in [0, 1]: exactly v / 255 of what was an 8-bit value v.
  at::Tensor ToUnit(const at::Tensor& images) const;

  // images: [B, C, H, W]. Returns [B, H, W, C] uint8; values beyond black and white, as RandomErasing makes them, are
  // cut off there. Of L*a*b* (ImgPil2LabTensor) the RGB that it was made of, for people to look at.
  at::Tensor ToPixels(const at::Tensor& images) const;

 private:
  Denormalizer(at::Tensor mean, at::Tensor std, PixelFloats floats);

  // [B, C, H, W], from 0 to 255.
  at::Tensor ToLevels(const at::Tensor& images) const;

  at::Tensor mean_;     // [1, C, 1, 1]
  at::Tensor std_;      // [1, C, 1, 1]
  PixelFloats floats_;  // before Normalize
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_DENORMALIZER_H_
