// SPDX-License-Identifier: Apache-2.0
//
// ImgPilResizeLargerSide (VISSL): scales every view so that its larger side becomes `size` (1024); the other one is
// rounded to whole pixels, half to even.
#ifndef SSL_DATA_TRANSFORMS_IMG_PIL_RESIZE_LARGER_SIDE_H_
#define SSL_DATA_TRANSFORMS_IMG_PIL_RESIZE_LARGER_SIDE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

class ImgPilResizeLargerSide : public ViewTransform {
 public:
  explicit ImgPilResizeLargerSide(int side) : side_(side) {}

  absl::string_view name() const override { return "ImgPilResizeLargerSide"; }
  absl::Status ApplyToView(const TransformContext& context, int index, View* view) const override;

 private:
  int side_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPilResizeLargerSide(const ConfigNode& entry,
                                                                      const BuildContext& context);
std::unique_ptr<Options> MakeImgPilResizeLargerSideOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_IMG_PIL_RESIZE_LARGER_SIDE_H_
