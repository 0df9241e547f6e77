// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/random_crop.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transforms/crop_image.h"
#include "ssl/data/transforms/pixel_view.h"

namespace ssl {
namespace {

struct RandomCropParameters : public Options {
  ConfigNode size;
  ConfigNode padding;
  bool pad_if_needed = false;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("size", &size, Doc("Side of the result, or [height, width].").Unit("pixels"));
    visitor.Field("padding", &padding, Doc("Black border added first: 1, 2 or 4 numbers.").Unit("pixels"));
    visitor.Field("pad_if_needed", &pad_if_needed, Doc("Pads an image that is smaller than size."));
  }
};

// The positions, in coordinates of the image, where the box may begin along one axis: empty when it does not fit.
struct Starts {
  int first;
  int last;
};

Starts StartsAlong(int length, int before, int after, int target, bool pad_if_needed) {
  int total = before + length + after;
  if (pad_if_needed && total < target) {
    const int missing = target - total;
    before += missing;
    total += 2 * missing;
  }
  return {-before, total - target - before};
}

absl::StatusOr<RandomCropOptions::Padding> ReadPadding(const ConfigNode& entry, const ConfigNode& padding) {
  if (padding.is_null()) return RandomCropOptions::Padding();
  const std::vector<ConfigNode> single = {padding};
  const std::vector<ConfigNode>& numbers = padding.is_list() ? padding.items() : single;
  std::vector<int> sides;
  for (const ConfigNode& number : numbers) {
    const absl::StatusOr<int64_t> value = number.AsInt();
    if (value.ok() && *value >= 0 && *value <= 65535) sides.push_back(static_cast<int>(*value));
  }
  const size_t count = sides.size();
  if (count != numbers.size() || (count != 1 && count != 2 && count != 4)) {
    return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, "padding"), " is ", padding.Describe(),
                                                   ", expected 1, 2 or 4 numbers of pixels"));
  }
  // Left and right, top and bottom stand at the same place modulo the number of entries.
  return RandomCropOptions::Padding{sides[0], sides[1 % count], sides[2 % count], sides[3 % count]};
}

}  // namespace

absl::Status RandomCrop::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  const RandomCropOptions::Padding& padding = options_.padding;
  const Image& image = view->image;
  const ImageSize& size = options_.size;
  const Starts rows = StartsAlong(image.height(), padding.top, padding.bottom, size.height, options_.pad_if_needed);
  const Starts columns = StartsAlong(image.width(), padding.left, padding.right, size.width, options_.pad_if_needed);
  if (rows.last < rows.first || columns.last < columns.first) {
    return absl::InvalidArgumentError(
        absl::StrCat("image with padding is ", image.width() + padding.left + padding.right, " x ",
                     image.height() + padding.top + padding.bottom, ", expected at least size, ", size.width, " x ",
                     size.height, " (width x height); pad_if_needed: true would pad it"));
  }
  CounterRandom random = context.Random(index);
  const int top = static_cast<int>(random.UniformInt(rows.first, rows.last));
  const int left = static_cast<int>(random.UniformInt(columns.first, columns.last));
  ApplyFlip(view);
  Image& source = context.scratch.image;
  std::swap(source, view->image);
  CropImage(source, {top, left, size.height, size.width}, &view->image);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomCrop(const ConfigNode& entry, const BuildContext& context) {
  RandomCropParameters parameters;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &parameters));
  RandomCropOptions options;
  SSL_ASSIGN_OR_RETURN(options.size, ParseSize(entry, "size", parameters.size));
  SSL_ASSIGN_OR_RETURN(options.padding, ReadPadding(entry, parameters.padding));
  options.pad_if_needed = parameters.pad_if_needed;
  return std::make_unique<RandomCrop>(options);
}

std::unique_ptr<Options> MakeRandomCropOptions() { return std::make_unique<RandomCropParameters>(); }

}  // namespace ssl
