// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/transform_options.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/config/reader.h"

namespace ssl {
namespace {

constexpr int64_t kMostSide = 65535;  // pixels

std::string TransformPath(const ConfigNode& entry) {
  const ConfigNode* name = entry.Find("name");
  return absl::StrCat("TRANSFORMS.", name != nullptr ? name->text() : "");
}

}  // namespace

absl::Status ReadTransformOptions(const ConfigNode& entry, Options* options) {
  ConfigNode parameters = ConfigNode::Map(entry.location());
  for (const ConfigNode::Entry& parameter : entry.entries()) {
    if (parameter.first != "name") parameters.Set(parameter.first, parameter.second);
  }
  return ReadOptions(parameters, TransformPath(entry), UnknownKeys::kError, options);
}

std::string TransformKey(const ConfigNode& entry, absl::string_view key) {
  const ConfigNode* value = entry.Find(key);
  const ConfigNode& place = value != nullptr ? *value : entry;
  return absl::StrCat(place.location().ToString(), ": ", TransformPath(entry), ".", key);
}

absl::StatusOr<ImageSize> ParseSize(const ConfigNode& entry, absl::string_view key, const ConfigNode& size) {
  const std::vector<ConfigNode> single = {size};
  const std::vector<ConfigNode>& sides = size.is_list() ? size.items() : single;
  bool valid = sides.size() == 1 || sides.size() == 2;
  std::vector<int> pixels;
  for (const ConfigNode& side : sides) {
    const absl::StatusOr<int64_t> value = side.AsInt();
    valid = valid && value.ok() && *value >= 1 && *value <= kMostSide;
    if (valid) pixels.push_back(static_cast<int>(*value));
  }
  if (valid) return ImageSize{pixels.front(), pixels.back()};
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, key), " is ", size.Describe(),
                                                 ", expected one or two numbers of pixels, from 1 to ", kMostSide));
}

absl::StatusOr<Interpolation> ParseInterpolation(const ConfigNode& entry, absl::string_view key,
                                                 const std::string& interpolation) {
  if (interpolation == "bilinear" || interpolation == "2") return Interpolation::kBilinear;
  if (interpolation == "bicubic" || interpolation == "3") return Interpolation::kBicubic;
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, key), " is '", interpolation,
                                                 "', expected 'bilinear' (or 2) or 'bicubic' (or 3)"));
}

absl::StatusOr<Interval> ParseInterval(const ConfigNode& entry, absl::string_view key, const std::vector<double>& pair,
                                       double limit) {
  if (pair.size() == 2 && pair[0] > 0.0 && pair[0] <= pair[1] && pair[1] <= limit) return Interval{pair[0], pair[1]};
  return absl::InvalidArgumentError(absl::StrCat(TransformKey(entry, key), " is [", absl::StrJoin(pair, ", "),
                                                 "], expected two increasing numbers above 0 and at most ", limit));
}

}  // namespace ssl
