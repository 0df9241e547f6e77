// SPDX-License-Identifier: Apache-2.0
//
// Where in an image a network looks: maps of its activations, drawn over the images. Pure functions; they may throw
// LibTorch exceptions.
#ifndef SSL_HOOKS_HEAT_MAP_H_
#define SSL_HOOKS_HEAT_MAP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/core/metrics.h"
#include "ssl/io/file_system.h"
#include "ssl/io/output_folder.h"

namespace ssl {

// features: [B, C, h, w]. Returns [B, h, w] in [0, 1]: the positive part of the sum over channels, stretched from its
// least to its largest value in each image. A map of one value, or of values that are not finite, is 0.
at::Tensor ActivationMap(const at::Tensor& features);

// Grad-CAM (Selvaraju et al., arXiv 1610.02391): the positive part of the sum over channels, each weighted by the mean
// of its gradient over the pixels; stretched like ActivationMap. Both [B, C, h, w].
at::Tensor GradCamMap(const at::Tensor& features, const at::Tensor& gradients);

enum class Interpolation { kLinear, kNearest, kCubic, kArea };

// maps: [B, h, w] in [0, 1]. Returns [B, size, size].
at::Tensor ResizeMaps(const at::Tensor& maps, int64_t size, Interpolation interpolation);

// values in [0, 1], of any shape. Returns [..., 3] in [0, 1]: blue over green to red ("jet").
at::Tensor HeatColours(const at::Tensor& values);

// images: [B, 1 or 3, H, W]. Returns [B, H, W, 3] uint8: each image from its least value, black, to its largest, white.
at::Tensor AsPixels(const at::Tensor& images);

// maps: [B, S, S]; images: [B, 1 or 3, H, W], of which the least value becomes black and the largest white. Returns
// [B, S, S, 3] uint8: the mean of image and colours.
at::Tensor DrawOverImages(const at::Tensor& maps, const at::Tensor& images);

// drawings: [B, H, W, 3] uint8. Writes <folder>/<name>_0.png, _1.png, ..., each of them whole or not at all; makes the
// folder, and removes what a process that was killed has left of a drawing of that name.
absl::Status WriteDrawings(const at::Tensor& drawings, const std::string& name, const OutputFolder& folder,
                           FileSystem& file_system);

// The same for the sinks that show images, as <name>_0, <name>_1, ...
absl::Status AddDrawings(const at::Tensor& drawings, const std::string& name, MetricStore& metrics);

}  // namespace ssl

#endif  // SSL_HOOKS_HEAT_MAP_H_
