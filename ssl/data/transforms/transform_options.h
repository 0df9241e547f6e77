// SPDX-License-Identifier: Apache-2.0
//
// What the factories of the transforms share: reading an entry of TRANSFORMS, strictly, and checks of its values.
#ifndef SSL_DATA_TRANSFORMS_TRANSFORM_OPTIONS_H_
#define SSL_DATA_TRANSFORMS_TRANSFORM_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/data/image/crop_box.h"
#include "ssl/data/image/resample.h"

namespace ssl {

// Reads the parameters of `entry`, a map with a name. An unknown parameter is an error.
absl::Status ReadTransformOptions(const ConfigNode& entry, Options* options);

// "file:line: TRANSFORMS.<name>.<key>", for messages about a parameter.
std::string TransformKey(const ConfigNode& entry, absl::string_view key);

struct ImageSize {
  int height = 0;
  int width = 0;
};

// One number (a square) or two numbers [height, width], each in [1, 65535].
absl::StatusOr<ImageSize> ParseSize(const ConfigNode& entry, absl::string_view key, const ConfigNode& size);

// "bilinear" or "bicubic", or Pillow's number of it (2 or 3).
absl::StatusOr<Interpolation> ParseInterpolation(const ConfigNode& entry, absl::string_view key,
                                                 const std::string& interpolation);

// Two numbers, 0 < lo <= hi <= limit.
absl::StatusOr<Interval> ParseInterval(const ConfigNode& entry, absl::string_view key, const std::vector<double>& pair,
                                       double limit);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_TRANSFORM_OPTIONS_H_
