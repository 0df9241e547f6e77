// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_to_patches_and_image.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/crop_image.h"
#include "ssl/data/transforms/image_patches.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

constexpr int kJitter = 21;

struct ImgPilToPatchesAndImageOptions : public Options {
  std::vector<double> crop_scale_image = {0.08, 1.0};
  int64_t crop_size_image = 224;
  std::vector<double> crop_scale_patches = {0.6, 1.0};
  int64_t crop_size_patches = 255;
  bool permute_patches = true;
  int64_t num_patches = 9;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("crop_scale_image", &crop_scale_image, Doc("Smallest and largest part of the area, of the image."));
    visitor.Field("crop_size_image", &crop_size_image, Doc("Side of the image.").Between(1, 65535).Unit("pixels"));
    visitor.Field("crop_scale_patches", &crop_scale_patches, Doc("The same of what the patches are cut from."));
    visitor.Field("crop_size_patches", &crop_size_patches, Doc("Its side.").Between(1, 65535).Unit("pixels"));
    visitor.Field("permute_patches", &permute_patches, Doc("The patches come in random order."));
    visitor.Field("num_patches", &num_patches, Doc("Number of patches: a square number.").Between(1, 1023));
  }
};

struct PatchBuffers {
  Image crop;
  std::vector<CropBox> boxes;
};

// Fisher and Yates.
void Shuffle(CounterRandom& random, std::vector<CropBox>* boxes) {
  for (int64_t last = static_cast<int64_t>(boxes->size()) - 1; last > 0; --last) {
    std::swap((*boxes)[last], (*boxes)[random.UniformInt(0, last)]);
  }
}

absl::StatusOr<RandomCropRule> SquareCrop(const ConfigNode& entry, absl::string_view scale_key,
                                          const std::vector<double>& scale, int64_t side) {
  RandomCropRule rule;
  rule.height = rule.width = static_cast<int>(side);
  SSL_ASSIGN_OR_RETURN(rule.scale, ParseInterval(entry, scale_key, scale, 1.0));
  return rule;
}

}  // namespace

absl::Status ImgPilToPatchesAndImage::Apply(const TransformContext& context, Sample* sample) const {
  if (sample->num_views() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("makes patches of one image, but gets ", sample->num_views()));
  }
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(sample->view(0)));
  ApplyFlip(&sample->view(0));
  Image& source = context.scratch.image;
  std::swap(source, sample->view(0).image);
  PatchBuffers& buffers = context.scratch.Get<PatchBuffers>();
  DrawCrop(context, /*view=*/1, rule_.patches, source, &buffers.crop);
  CounterRandom random = context.Random(2);  // views 0 and 1 name the streams of the two crops
  SSL_RETURN_IF_ERROR(
      DrawPatchBoxes(buffers.crop.height(), buffers.crop.width(), rule_.side, kJitter, random, &buffers.boxes));
  if (rule_.permute) Shuffle(random, &buffers.boxes);

  const int patches = static_cast<int>(buffers.boxes.size());
  sample->ResetViews(1 + patches);
  DrawCrop(context, /*view=*/0, rule_.image, source, &sample->view(0).image);
  for (int i = 0; i < patches; ++i) CropImage(buffers.crop, buffers.boxes[i], &sample->view(1 + i).image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilToPatchesAndImage(const ConfigNode& entry,
                                                                       const BuildContext& context) {
  ImgPilToPatchesAndImageOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  PatchesAndImageRule rule;
  rule.permute = options.permute_patches;
  SSL_ASSIGN_OR_RETURN(rule.side, PatchesPerSide(entry, options.num_patches));
  SSL_ASSIGN_OR_RETURN(rule.image,
                       SquareCrop(entry, "crop_scale_image", options.crop_scale_image, options.crop_size_image));
  SSL_ASSIGN_OR_RETURN(rule.patches,
                       SquareCrop(entry, "crop_scale_patches", options.crop_scale_patches, options.crop_size_patches));
  if (options.crop_size_patches >= static_cast<int64_t>(rule.side) * (kJitter + 1)) {
    return std::make_unique<ImgPilToPatchesAndImage>(rule);
  }
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "crop_size_patches"), " is ",
                                                 options.crop_size_patches, ", expected at least ",
                                                 rule.side * (kJitter + 1), " for ", options.num_patches,
                                                 " patches that are ", kJitter, " smaller than their cells"));
}

std::unique_ptr<Options> MakeImgPilToPatchesAndImageOptions() {
  return std::make_unique<ImgPilToPatchesAndImageOptions>();
}

}  // namespace ssl
