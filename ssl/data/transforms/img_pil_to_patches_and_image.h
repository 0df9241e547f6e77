// SPDX-License-Identifier: Apache-2.0
//
// ImgPilToPatchesAndImage (VISSL; PIRL, https://arxiv.org/abs/1912.01991): the image becomes 1 + num_patches (9) views:
// a random crop (crop_scale_image, crop_size_image), and in random order the patches of another one
// (crop_scale_patches, crop_size_patches), each 21 pixels smaller than its cell (image_patches.h).
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_TO_PATCHES_AND_IMAGE_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_TO_PATCHES_AND_IMAGE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/random_resized_crop.h"

namespace ssl {

struct PatchesAndImageRule {
  RandomCropRule image;
  RandomCropRule patches;  // a square
  int side = 3;            // patches of a row
  bool permute = true;
};

class ImgPilToPatchesAndImage : public Transform {
 public:
  explicit ImgPilToPatchesAndImage(const PatchesAndImageRule& rule) : rule_(rule) {}

  absl::string_view name() const override { return "ImgPilToPatchesAndImage"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;

 private:
  PatchesAndImageRule rule_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilToPatchesAndImage(const ConfigNode& entry,
                                                                       const BuildContext& context);
std::unique_ptr<Options> MakeImgPilToPatchesAndImageOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_TO_PATCHES_AND_IMAGE_H_
