// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/img_pil_2_lab_tensor.h"

#include <utility>

#include "ssl/base/status_macros.h"
#include "ssl/data/image/lab.h"
#include "ssl/data/transforms/pixel_view.h"
#include "ssl/data/transforms/transform_options.h"

namespace ssl {
namespace {

struct ImgPil2LabTensorOptions : public Options {
  void VisitFields(FieldVisitor& visitor) override {}
};

}  // namespace

absl::Status ImgPil2LabTensor::ApplyToView(const TransformContext& context, int index, View* view) const {
  SSL_RETURN_IF_ERROR(CheckPixelsOpen(*view));
  ConvertToLab(view->image, &context.scratch.image);
  std::swap(view->image, context.scratch.image);
  view->table = &table_;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transform>> MakeImgPil2LabTensor(const ConfigNode& entry, const BuildContext& context) {
  ImgPil2LabTensorOptions options;
  SSL_RETURN_IF_ERROR(ReadTransformOptions(entry, &options));
  return std::make_unique<ImgPil2LabTensor>();
}

std::unique_ptr<Options> MakeImgPil2LabTensorOptions() { return std::make_unique<ImgPil2LabTensorOptions>(); }

}  // namespace ssl
