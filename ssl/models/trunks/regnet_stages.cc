// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/regnet_stages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"

namespace ssl {
namespace {

constexpr char kPath[] = "config.MODEL.TRUNK.REGNET";
constexpr char kAnyNet[] = "anynet";
constexpr int64_t kWidthStep = 8;

struct Preset {
  const char* name;
  int64_t depth;
  int64_t w_0;
  double w_a;
  double w_m;
  int64_t group_width;
  bool use_se;
};

constexpr Preset kPresets[] = {
    {"regnet_x_400mf", 22, 24, 24.48, 2.54, 16, false},   {"regnet_x_800mf", 16, 56, 35.73, 2.28, 16, false},
    {"regnet_x_1.6gf", 18, 80, 34.01, 2.25, 24, false},   {"regnet_x_3.2gf", 25, 88, 26.31, 2.25, 48, false},
    {"regnet_x_8gf", 23, 80, 49.56, 2.88, 120, false},    {"regnet_x_16gf", 22, 216, 55.59, 2.1, 128, false},
    {"regnet_x_32gf", 23, 320, 69.86, 2.0, 168, false},   {"regnet_y_400mf", 16, 48, 27.89, 2.09, 8, true},
    {"regnet_y_800mf", 14, 56, 38.84, 2.4, 16, true},     {"regnet_y_1.6gf", 27, 48, 20.71, 2.65, 24, true},
    {"regnet_y_3.2gf", 21, 80, 42.63, 2.66, 24, true},    {"regnet_y_8gf", 17, 192, 76.82, 2.19, 56, true},
    {"regnet_y_16gf", 18, 200, 106.23, 2.48, 112, true},  {"regnet_y_32gf", 20, 232, 115.89, 2.53, 232, true},
    {"regnet_y_64gf", 20, 352, 147.48, 2.4, 328, true},   {"regnet_y_128gf", 27, 456, 160.83, 2.52, 264, true},
    {"regnet_y_256gf", 27, 640, 124.47, 2.04, 848, true},
};

// To the nearest multiple, ties to even as in Python.
int64_t RoundTo(double value, int64_t multiple) {
  return static_cast<int64_t>(std::nearbyint(value / static_cast<double>(multiple))) * multiple;
}

// Groups that are wider than the bottleneck shrink to it; then the widths fit the groups.
RegNetStage MakeStage(int64_t blocks, int64_t width, int64_t group_width, double multiplier, int64_t stride) {
  const auto bottleneck = static_cast<int64_t>(static_cast<double>(width) * multiplier);
  const int64_t group = std::min(group_width, bottleneck);
  RegNetStage stage;
  stage.blocks = blocks;
  stage.stride = stride;
  stage.width = static_cast<int64_t>(static_cast<double>(RoundTo(static_cast<double>(bottleneck), group)) / multiplier);
  stage.bottleneck_width = static_cast<int64_t>(std::nearbyint(static_cast<double>(stage.width) * multiplier));
  stage.groups = stage.bottleneck_width / group;
  return stage;
}

absl::StatusOr<std::vector<RegNetStage>> AnyNetStages(const RegNetOptions& options) {
  const std::pair<const char*, size_t> lengths[] = {{"widths", options.widths.size()},
                                                    {"group_widths", options.group_widths.size()},
                                                    {"bottleneck_multipliers", options.bottleneck_multipliers.size()},
                                                    {"strides", options.strides.size()}};
  for (const auto& [key, length] : lengths) {
    if (length == options.depths.size() && length > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(kPath, ".", key, " has ", length, " entries and depths ",
                                                   options.depths.size(), ", expected one of each for every stage"));
  }
  std::vector<RegNetStage> stages;
  for (size_t i = 0; i < options.depths.size(); ++i) {
    stages.push_back(MakeStage(options.depths[i], options.widths[i], options.group_widths[i],
                               options.bottleneck_multipliers[i], options.strides[i]));
    if (stages[i].width == options.widths[i] && stages[i].bottleneck_width % options.group_widths[i] == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(kPath, ".group_widths[", i, "] is ", options.group_widths[i],
                                                   ", which does not divide the bottleneck of width ",
                                                   options.widths[i], " * ", options.bottleneck_multipliers[i]));
  }
  return stages;
}

absl::Status CheckNumbers(const RegNetOptions& options) {
  if (options.depth < 1 || options.w_0 < kWidthStep || options.w_a < 0 || options.w_m <= 1 || options.group_width < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(kPath, " has no name, depth ", options.depth, ", w_0 ", options.w_0, ", w_a ", options.w_a,
                     ", w_m ", options.w_m, " and group_width ", options.group_width,
                     ", expected a name, or depth >= 1, w_0 >= 8, w_a >= 0, w_m > 1 and group_width >= 1"));
  }
  return absl::OkStatus();
}

}  // namespace

void RegNetOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("name", &name, Doc("A preset such as regnet_y_16gf, anynet, or nothing."));
  visitor.Field("depth", &depth, Doc("Blocks in total.").AtLeast(0));
  visitor.Field("w_0", &w_0, Doc("Width of the first block.").AtLeast(0));
  visitor.Field("w_a", &w_a, Doc("Growth of the width from block to block.").AtLeast(0));
  visitor.Field("w_m", &w_m, Doc("Ratio of the widths of stages.").AtLeast(0));
  visitor.Field("group_width", &group_width, Doc("Channels of a group.").AtLeast(0));
  visitor.Field("bottleneck_multiplier", &bottleneck_multiplier, Doc("Bottleneck to block width.").Above(0));
  visitor.Field("depths", &depths, Doc("anynet: blocks of each stage.").AtLeast(1));
  visitor.Field("widths", &widths, Doc("anynet: widths.").AtLeast(1));
  visitor.Field("group_widths", &group_widths, Doc("anynet: channels of a group.").AtLeast(1));
  visitor.Field("bottleneck_multipliers", &bottleneck_multipliers, Doc("anynet: bottleneck to width.").Above(0));
  visitor.Field("strides", &strides, Doc("anynet: stride of the first block of each stage.").AtLeast(1));
  visitor.Field("stem_type", &stem_type, Doc("The first layer: a 3x3 convolution.").OneOf({"simple_stem_in"}));
  visitor.Field("stem_width", &stem_width, Doc("Width of the stem.").AtLeast(1));
  visitor.Field("block_type", &block_type, Doc("The block.").OneOf({"res_bottleneck_block"}));
  visitor.Field("activation", &activation, Doc("The activation.").OneOf({"relu"}));
  visitor.Field("use_se", &use_se, Doc("Squeeze and excitation in each block."));
  visitor.Field("se_ratio", &se_ratio, Doc("Squeezed width to the block's input width.").Above(0));
  visitor.Field("bn_epsilon", &bn_epsilon, Doc("Added to the variance in batch norm.").AtLeast(0));
  visitor.Field("bn_momentum", &bn_momentum, Doc("Share of the newest batch in running statistics.").Between(0, 1));
}

absl::StatusOr<RegNetOptions> ResolveRegNetPreset(const RegNetOptions& options) {
  if (options.name.empty() || options.name == kAnyNet) return options;
  std::vector<std::string> known = {kAnyNet};
  for (const Preset& preset : kPresets) {
    known.push_back(preset.name);
    if (options.name != preset.name) continue;
    RegNetOptions resolved;
    resolved.depth = preset.depth;
    resolved.w_0 = preset.w_0;
    resolved.w_a = preset.w_a;
    resolved.w_m = preset.w_m;
    resolved.group_width = preset.group_width;
    resolved.use_se = preset.use_se;
    resolved.input_channels = options.input_channels;
    return resolved;
  }
  return absl::NotFoundError(absl::StrCat(kPath, ".name is '", options.name, "'", DidYouMean(options.name, known),
                                          "; known: ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<std::vector<RegNetStage>> RegNetStages(const RegNetOptions& options) {
  if (options.name == kAnyNet) return AnyNetStages(options);
  const absl::Status numbers = CheckNumbers(options);
  if (!numbers.ok()) return numbers;
  std::vector<std::pair<int64_t, int64_t>> runs;  // width, blocks
  for (int64_t block = 0; block < options.depth; ++block) {
    const auto first = static_cast<double>(options.w_0);
    const double target = first + options.w_a * static_cast<double>(block);
    const double exponent = std::nearbyint(std::log(target / first) / std::log(options.w_m));
    const int64_t width = RoundTo(first * std::pow(options.w_m, exponent), kWidthStep);
    if (runs.empty() || runs.back().first != width) runs.emplace_back(width, 0);
    ++runs.back().second;
  }
  std::vector<RegNetStage> stages;
  for (const auto& [width, blocks] : runs) {
    stages.push_back(MakeStage(blocks, width, options.group_width, options.bottleneck_multiplier, /*stride=*/2));
  }
  return stages;
}

}  // namespace ssl
