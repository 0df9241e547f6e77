// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/register_transforms.h"

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/data/transform.h"
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
namespace {

struct TransformEntry {
  const char* name;
  absl::StatusOr<std::unique_ptr<Transform>> (*make)(const ConfigNode& entry, const BuildContext& context);
  std::unique_ptr<Options> (*make_options)();
  const char* summary;
};

// Sorted by name.
constexpr TransformEntry kTransforms[] = {
    {"CenterCrop", &MakeCenterCrop, &MakeCenterCropOptions,
     "The middle of every view; a smaller one is padded with black on both sides first. torchvision's: nothing "
     "is resized."},
    {"ColorJitter", &MakeColorJitter, &MakeColorJitterOptions,
     "Random brightness, contrast, saturation and hue, in random order. torchvision's; each adjustment equals "
     "Pillow in every pixel. `p` is ours. Saturation and hue leave grey images as they are."},
    {"Grayscale", &MakeGrayscale, &MakeGrayscaleOptions,
     "Turns views grey. torchvision's; equals Pillow in every pixel. One channel is left, which the batch "
     "repeats in all its channels."},
    {"ImgPatchesFromTensor", &MakeImgPatchesFromTensor, &MakeImgPatchesFromTensorOptions,
     "The image becomes several views, the patches of Jigsaw ([arXiv "
     "1603.09246](https://arxiv.org/abs/1603.09246)), each cut at a random place of its cell. VISSL's, but for "
     "patches cut whole. May stand after ToTensor."},
    {"ImgPil2LabTensor", &MakeImgPil2LabTensor, &MakeImgPil2LabTensorOptions,
     "Pixels become floats of L\\*a\\*b\\*: L - 50 in [-50, 50], a and b in [-128, 127] (Colorization, [arXiv "
     "1603.08511](https://arxiv.org/abs/1603.08511)). VISSL's; equals OpenCV 5 in every value. Stands where "
     "ToTensor would."},
    {"ImgPilColorDistortion", &MakeImgPilColorDistortion, &MakeImgPilColorDistortionOptions,
     "Colour jitter with probability 0.8, then grey with probability 0.2 (SimCLR, [arXiv "
     "2002.05709](https://arxiv.org/abs/2002.05709)). VISSL's; pixels as of ColorJitter and Grayscale."},
    {"ImgPilGaussianBlur", &MakeImgPilGaussianBlur, &MakeImgPilGaussianBlurOptions,
     "Blur of a random standard deviation, with a probability (SimCLR). VISSL's; equals Pillow's GaussianBlur "
     "in every pixel."},
    {"ImgPilMultiCropRandomApply", &MakeImgPilMultiCropRandomApply, &MakeImgPilMultiCropRandomApplyOptions,
     "Applies a list of transforms to each view with a probability of its own (BYOL, [arXiv "
     "2006.07733](https://arxiv.org/abs/2006.07733)). VISSL's."},
    {"ImgPilRandomColorJitter", &MakeImgPilRandomColorJitter, &MakeImgPilRandomColorJitterOptions,
     "The jitter of ImgPilColorDistortion alone. VISSL's."},
    {"ImgPilRandomPhotometric", &MakeImgPilRandomPhotometric, &MakeImgPilRandomPhotometricOptions,
     "With a probability all of: posterize to 4 ... 8 bits, sharpness by a factor in [0.1, 1.9], solarize from "
     "a threshold in [0, 256], autocontrast (PIRL, [arXiv 1912.01991](https://arxiv.org/abs/1912.01991)). "
     "VISSL's; each operation equals Pillow in every pixel."},
    {"ImgPilRandomSolarize", &MakeImgPilRandomSolarize, &MakeImgPilRandomSolarizeOptions,
     "With a probability, inverts the values from a random threshold in [0, 256] on (BYOL). VISSL's; equals "
     "Pillow in every pixel."},
    {"ImgPilResizeLargerSide", &MakeImgPilResizeLargerSide, &MakeImgPilResizeLargerSideOptions,
     "Scales every view to a length of its larger side. VISSL's; equals Pillow in every pixel."},
    {"ImgPilToMultiCrop", &MakeImgPilToMultiCrop, &MakeImgPilToMultiCropOptions,
     "One image becomes several views, random crops of several sizes (SwAV, [arXiv "
     "2006.09882](https://arxiv.org/abs/2006.09882), section 3.3). VISSL's; each crop is RandomResizedCrop's. "
     "`crop_ratios` is ours."},
    {"ImgPilToPatchesAndImage", &MakeImgPilToPatchesAndImage, &MakeImgPilToPatchesAndImageOptions,
     "The image becomes a random crop, and in random order the patches of another one (PIRL), each 21 pixels "
     "smaller than its cell. VISSL's, but for `permute_patches: false`, which is obeyed."},
    {"ImgPilToRawTensor", &MakeImgPilToRawTensor, &MakeToTensorOptions, "Pixels become floats in [0, 255]. VISSL's."},
    {"ImgReplicatePil", &MakeImgReplicatePil, &MakeImgReplicatePilOptions,
     "Every view is followed by copies of itself. VISSL's."},
    {"ImgRotatePil", &MakeImgRotatePil, &MakeImgRotatePilOptions,
     "Turns the image by one of several equally spaced angles, counter-clockwise, and makes the number of the "
     "angle its label (RotNet, [arXiv 1803.07728](https://arxiv.org/abs/1803.07728)); corners that nothing "
     "lands on become black. VISSL's; equals Pillow in every pixel."},
    {"ImgToTensor", &MakeImgToTensor, &MakeToTensorOptions, "VISSL's name of ToTensor."},
    {"MNISTImgPil2RGB", &MakeMnistImgPil2Rgb, &MakeMnistImgPil2RgbOptions,
     "Puts the image on a black one. VISSL's, but that one channel is left, which the batch repeats."},
    {"Normalize", &MakeNormalize, &MakeNormalizeOptions,
     "(value - mean) / std for each channel, after ToTensor or one like it. torchvision's."},
    {"OneHotEncode", &MakeOneHotEncode, &MakeOneHotEncodeOptions,
     "The label becomes a row of numbers: 1 for its class, or for each of the classes that several label files "
     "give it, and 0 for the others. VISSL's."},
    {"RandAugment", &MakeRandAugment, &MakeRandAugmentOptions,
     "Some of 15 operations, drawn anew for each view, each carried out with probability 1/2 ([arXiv "
     "1909.13719](https://arxiv.org/abs/1909.13719)). VISSL's, with timm's scales; each operation equals "
     "Pillow in every pixel."},
    {"RandomCrop", &MakeRandomCrop, &MakeRandomCropOptions,
     "A box of a fixed size at a random place of every view. torchvision's, without `fill` and `padding_mode`."},
    {"RandomErasing", &MakeRandomErasing, &MakeRandomErasingOptions,
     "A random box of every view has other floats ([arXiv 1708.04896](https://arxiv.org/abs/1708.04896)). "
     "torchvision's. Stands after Normalize, and once."},
    {"RandomGrayscale", &MakeRandomGrayscale, &MakeRandomGrayscaleOptions,
     "Grayscale with a probability. torchvision's."},
    {"RandomHorizontalFlip", &MakeRandomHorizontalFlip, &MakeRandomHorizontalFlipOptions,
     "Mirrors each view with a probability. torchvision's."},
    {"RandomResizedCrop", &MakeRandomResizedCrop, &MakeRandomResizedCropOptions,
     "Every view becomes a random part of itself, scaled to a fixed size. torchvision's; equals Pillow in "
     "every pixel."},
    {"RandomVerticalFlip", &MakeRandomVerticalFlip, &MakeRandomVerticalFlipOptions,
     "Turns each view upside down with a probability. torchvision's."},
    {"Resize", &MakeResize, &MakeResizeOptions,
     "Scales every view. torchvision's, without `max_size`; equals Pillow in every pixel."},
    {"ShuffleImgPatches", &MakeShuffleImgPatches, &MakeShuffleImgPatchesOptions,
     "Orders the views by one of the permutations of a file and makes its row the label (Jigsaw): view k "
     "becomes what view permutation[k] was. VISSL's."},
    {"ToTensor", &MakeToTensor, &MakeToTensorOptions, "Pixels become floats in [0, 1]. torchvision's."},
    {"VisslAutoAugment", &MakeVisslAutoAugment, &MakeVisslAutoAugmentOptions,
     "One of the 25 pairs of operations that were found for ImageNet, drawn anew for each view ([arXiv "
     "1805.09501](https://arxiv.org/abs/1805.09501)). VISSL's, with timm's scales; each operation equals "
     "Pillow in every pixel."},
};

}  // namespace

absl::Status RegisterTransforms(Registries* registries) {
  for (const TransformEntry& entry : kTransforms) {
    SSL_RETURN_IF_ERROR(registries->transforms.Register(entry.name, entry.make));
  }
  return absl::OkStatus();
}

std::vector<NamedEntry> DescribeTransforms() {
  std::vector<NamedEntry> entries;
  for (const TransformEntry& entry : kTransforms) entries.push_back({entry.name, entry.summary, entry.make_options()});
  return entries;
}

}  // namespace ssl
