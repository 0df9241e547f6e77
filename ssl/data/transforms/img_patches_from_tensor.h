// SPDX-License-Identifier: Apache-2.0
//
// ImgPatchesFromTensor (VISSL; Jigsaw, https://arxiv.org/abs/1603.09246): the image becomes num_patches (9) views, its
// patches, each patch_jitter (21) pixels smaller than its cell (image_patches.h). It may stand after ToTensor.
#ifndef SSL_DATA_TRANSFORMS_IMG_PATCHES_FROM_TENSOR_H_
#define SSL_DATA_TRANSFORMS_IMG_PATCHES_FROM_TENSOR_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

class ImgPatchesFromTensor : public Transform {
 public:
  ImgPatchesFromTensor(int side, int jitter) : side_(side), jitter_(jitter) {}

  absl::string_view name() const override { return "ImgPatchesFromTensor"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;

 private:
  int side_;
  int jitter_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPatchesFromTensor(const ConfigNode& entry,
                                                                    const BuildContext& context);
std::unique_ptr<Options> MakeImgPatchesFromTensorOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PATCHES_FROM_TENSOR_H_
