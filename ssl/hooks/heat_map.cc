// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/heat_map.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

// values: [B, ...]. Each image from its least value, 0, to its largest, 1.
at::Tensor Stretch(const at::Tensor& values) {
  const at::Tensor rows = values.flatten(1).to(at::kFloat);
  const at::Tensor least = std::get<0>(rows.min(1, /*keepdim=*/true));
  const at::Tensor range = std::get<0>(rows.max(1, /*keepdim=*/true)) - least;
  // 0 / 0 where all values are one; what is not finite spoils its whole image.
  return at::nan_to_num((rows - least) / range, 0.0, 0.0, 0.0).view_as(values);
}

// One of the three colours: a trapezium about `middle`, from 0 to 1 and back.
at::Tensor Bump(const at::Tensor& values, double middle) {
  return (1.5 - (values * 4.0 - middle).abs()).clamp(0.0, 1.0);
}

// A process that was killed leaves a file half done under a name that nobody writes again.
absl::Status RemoveHalfDone(const std::string& name, const OutputFolder& folder, FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> files, file_system.List(folder.path()));
  for (const std::string& file : files) {
    const bool is_half_done = absl::StartsWith(file, absl::StrCat(name, "_")) && absl::StrContains(file, ".png.tmp-");
    if (is_half_done) SSL_RETURN_IF_ERROR(file_system.RemoveFile(absl::StrCat(folder.path(), "/", file)));
  }
  return absl::OkStatus();
}

}  // namespace

at::Tensor ActivationMap(const at::Tensor& features) { return Stretch(features.sum(1).relu()); }

at::Tensor GradCamMap(const at::Tensor& features, const at::Tensor& gradients) {
  return Stretch((features * gradients.mean({2, 3}, /*keepdim=*/true)).sum(1).relu());
}

at::Tensor ResizeMaps(const at::Tensor& maps, int64_t size, Interpolation interpolation) {
  const at::Tensor planes = maps.unsqueeze(1);
  const std::vector<int64_t> shape = {size, size};
  at::Tensor resized;
  switch (interpolation) {
    case Interpolation::kLinear:
      resized = at::upsample_bilinear2d(planes, shape, /*align_corners=*/false);
      break;
    case Interpolation::kNearest:
      resized = at::upsample_nearest2d(planes, shape);
      break;
    case Interpolation::kCubic:
      resized = at::upsample_bicubic2d(planes, shape, /*align_corners=*/false);
      break;
    case Interpolation::kArea:
      resized = at::adaptive_avg_pool2d(planes, shape);
      break;
  }
  return resized.squeeze(1).clamp(0.0, 1.0);  // cubic overshoots
}

at::Tensor HeatColours(const at::Tensor& values) {
  return at::stack({Bump(values, 3.0), Bump(values, 2.0), Bump(values, 1.0)}, -1);
}

at::Tensor AsPixels(const at::Tensor& images) {
  const at::Tensor pixels = Stretch(images).expand({-1, 3, -1, -1}).permute({0, 2, 3, 1});
  return (pixels * 255.0).round().to(at::kByte).contiguous();
}

at::Tensor DrawOverImages(const at::Tensor& maps, const at::Tensor& images) {
  const std::vector<int64_t> shape = {maps.size(1), maps.size(2)};
  const at::Tensor grey_or_rgb = at::upsample_bilinear2d(Stretch(images), shape, /*align_corners=*/false);
  const at::Tensor pixels = grey_or_rgb.expand({-1, 3, -1, -1}).permute({0, 2, 3, 1});  // [B, S, S, 3]
  return ((pixels + HeatColours(maps)) * (255.0 / 2.0)).round().to(at::kByte).contiguous();
}

absl::Status WriteDrawings(const at::Tensor& drawings, const std::string& name, const OutputFolder& folder,
                           FileSystem& file_system) {
  SSL_RETURN_IF_ERROR(CreateOutputFolder(folder, file_system));
  SSL_RETURN_IF_ERROR(RemoveHalfDone(name, folder, file_system));
  for (int64_t i = 0; i < drawings.size(0); ++i) {
    const at::Tensor drawing = drawings[i].to(at::kCPU).contiguous();
    Image image;
    image.Borrow(drawing.const_data_ptr<uint8_t>(), static_cast<int>(drawing.size(0)),
                 static_cast<int>(drawing.size(1)), static_cast<int>(drawing.size(2)));
    SSL_ASSIGN_OR_RETURN(const std::string png, EncodePng(image));
    SSL_RETURN_IF_ERROR(WriteFileAtomically(file_system, absl::StrCat(folder.path(), "/", name, "_", i, ".png"), png));
  }
  return absl::OkStatus();
}

absl::Status AddDrawings(const at::Tensor& drawings, const std::string& name, MetricStore& metrics) {
  for (int64_t i = 0; i < drawings.size(0); ++i) {
    SSL_RETURN_IF_ERROR(metrics.AddImage(absl::StrCat(name, "_", i), drawings[i]));
  }
  return absl::OkStatus();
}

}  // namespace ssl
