// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/mnist_img_pil_2_rgb.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/crop_image.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

constexpr int64_t kLargestSide = 65535;

struct MnistImgPil2RgbOptions : public Options {
  ConfigNode size;
  std::vector<int64_t> box = {0, 0};

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("size", &size, Doc("Side of the result, or [width, height]; [] keeps the image's.").Unit("pixels"));
    visitor.Field("box", &box, Doc("Where the image lies in it: [x, y].").Between(-kLargestSide, kLargestSide));
  }
};

}  // namespace

absl::Status MnistImgPil2Rgb::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  if (canvas_.height == 0) return absl::OkStatus();
  ApplyFlip(view);
  Image& source = context.scratch.image;
  std::swap(source, view->image);
  CropImage(source, canvas_, &view->image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeMnistImgPil2Rgb(const ConfigNode& entry, const BuildContext& context) {
  MnistImgPil2RgbOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  if (options.box.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(TransformKey(entry, "box"), " is [", absl::StrJoin(options.box, ", "), "], expected [x, y]"));
  }
  const bool keeps_size = options.size.is_null() || (options.size.is_list() && options.size.items().empty());
  if (keeps_size) return std::make_unique<MnistImgPil2Rgb>(CropBox());
  // Pillow's order: ParseSize's height is the width here.
  SSL_ASSIGN_OR_RETURN(const ImageSize size, ParseSize(entry, "size", options.size));
  return std::make_unique<MnistImgPil2Rgb>(
      CropBox{-static_cast<int>(options.box[1]), -static_cast<int>(options.box[0]), size.width, size.height});
}

std::unique_ptr<Options> MakeMnistImgPil2RgbOptions() { return std::make_unique<MnistImgPil2RgbOptions>(); }

}  // namespace ssl
