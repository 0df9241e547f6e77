// SPDX-License-Identifier: Apache-2.0
//
// RandomCrop (torchvision): a box of a fixed size at a random place of every view. Parameters: size (a number, or
// [height, width]); padding: black pixels added first, a number for all sides, [left and right, top and bottom] or
// [left, top, right, bottom]; pad_if_needed (false): a view that is still smaller than the box is padded on both sides
// by what is missing.
#ifndef SSL_DATA_TRANSFORMS_RANDOM_CROP_H_
#define SSL_DATA_TRANSFORMS_RANDOM_CROP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/base/random.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/transform.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {

struct RandomCropOptions {
  ImageSize size;
  // Black pixels on each side.
  struct Padding {
    int left = 0;
    int top = 0;
    int right = 0;
    int bottom = 0;
  };
  Padding padding = {};
  bool pad_if_needed = false;
};

class RandomCrop : public ViewTransform {
 public:
  explicit RandomCrop(const RandomCropOptions& options) : options_(options) {}

  absl::string_view name() const override { return "RandomCrop"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  RandomCropOptions options_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeRandomCrop(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeRandomCropOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_RANDOM_CROP_H_
