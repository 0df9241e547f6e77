// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/register_transforms.h"

#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/center_crop.h"
#include "ssl/data/transforms/color_jitter.h"
#include "ssl/data/transforms/grayscale.h"
#include "ssl/data/transforms/img_patches_from_tensor.h"
#include "ssl/data/transforms/img_pil_2_lab_tensor.h"
#include "ssl/data/transforms/img_pil_color_distortion.h"
#include "ssl/data/transforms/img_pil_gaussian_blur.h"
#include "ssl/data/transforms/img_pil_multi_crop_random_apply.h"
#include "ssl/data/transforms/img_pil_random_photometric.h"
#include "ssl/data/transforms/img_pil_random_solarize.h"
#include "ssl/data/transforms/img_pil_resize_larger_side.h"
#include "ssl/data/transforms/img_pil_to_multi_crop.h"
#include "ssl/data/transforms/img_pil_to_patches_and_image.h"
#include "ssl/data/transforms/img_replicate_pil.h"
#include "ssl/data/transforms/img_rotate_pil.h"
#include "ssl/data/transforms/mnist_img_pil_2_rgb.h"
#include "ssl/data/transforms/one_hot_encode.h"
#include "ssl/data/transforms/rand_augment.h"
#include "ssl/data/transforms/random_crop.h"
#include "ssl/data/transforms/random_erasing.h"
#include "ssl/data/transforms/random_horizontal_flip.h"
#include "ssl/data/transforms/random_resized_crop.h"
#include "ssl/data/transforms/random_vertical_flip.h"
#include "ssl/data/transforms/resize.h"
#include "ssl/data/transforms/shuffle_img_patches.h"
#include "ssl/data/transforms/to_tensor.h"
#include "ssl/data/transforms/vissl_auto_augment.h"

namespace ssl {

absl::Status RegisterTransforms(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->transforms.Register("CenterCrop", MakeCenterCrop));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ColorJitter", MakeColorJitter));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("Grayscale", MakeGrayscale));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPatchesFromTensor", MakeImgPatchesFromTensor));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPil2LabTensor", MakeImgPil2LabTensor));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilColorDistortion", MakeImgPilColorDistortion));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilGaussianBlur", MakeImgPilGaussianBlur));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilMultiCropRandomApply", MakeImgPilMultiCropRandomApply));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilRandomColorJitter", MakeImgPilRandomColorJitter));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilRandomPhotometric", MakeImgPilRandomPhotometric));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilRandomSolarize", MakeImgPilRandomSolarize));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilResizeLargerSide", MakeImgPilResizeLargerSide));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilToMultiCrop", MakeImgPilToMultiCrop));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilToPatchesAndImage", MakeImgPilToPatchesAndImage));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgPilToRawTensor", MakeImgPilToRawTensor));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgReplicatePil", MakeImgReplicatePil));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgRotatePil", MakeImgRotatePil));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ImgToTensor", MakeImgToTensor));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("MNISTImgPil2RGB", MakeMnistImgPil2Rgb));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("Normalize", MakeNormalize));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("OneHotEncode", MakeOneHotEncode));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("RandAugment", MakeRandAugment));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("RandomCrop", MakeRandomCrop));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("RandomErasing", MakeRandomErasing));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("RandomGrayscale", MakeRandomGrayscale));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("RandomHorizontalFlip", MakeRandomHorizontalFlip));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("RandomResizedCrop", MakeRandomResizedCrop));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("RandomVerticalFlip", MakeRandomVerticalFlip));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("Resize", MakeResize));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ShuffleImgPatches", MakeShuffleImgPatches));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("ToTensor", MakeToTensor));
  SSL_RETURN_IF_ERROR(registries->transforms.Register("VisslAutoAugment", MakeVisslAutoAugment));
  return absl::OkStatus();
}

}  // namespace ssl
