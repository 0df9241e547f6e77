// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/resnet.h"

#include <ATen/ops/max_pool2d.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/conv_norm.h"
#include "ssl/models/layers.h"
#include "ssl/models/model_section.h"
#include "ssl/models/trunks/staged_trunk.h"

namespace ssl {
namespace {

constexpr int64_t kBottleneckExpansion = 4;

struct DepthSpec {
  bool bottleneck = false;
  std::array<int64_t, 4> blocks{};
};

const std::map<int64_t, DepthSpec>& Depths() {
  static const auto* const depths = new std::map<int64_t, DepthSpec>{
      {18, {false, {2, 2, 2, 2}}},  {34, {false, {3, 4, 6, 3}}},  {50, {true, {3, 4, 6, 3}}},
      {101, {true, {3, 4, 23, 3}}}, {152, {true, {3, 8, 36, 3}}}, {200, {true, {3, 24, 36, 3}}},
  };
  return *depths;
}

// relu(f(x) + shortcut(x)); f has two 3x3 convolutions, or 1x1, 3x3, 1x1 (bottleneck).
struct Block {
  std::vector<ConvNorm> layers;
  std::optional<ConvNorm> downsample;

  at::Tensor Forward(const at::Tensor& input, NormMode mode) const {
    at::Tensor output = input;
    for (size_t i = 0; i + 1 < layers.size(); ++i) output = layers[i].ForwardRelu(output, at::Tensor(), mode);
    const at::Tensor shortcut = downsample.has_value() ? downsample->Forward(input, mode) : input;
    return layers.back().ForwardRelu(output, shortcut, mode);
  }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) {
    for (ConvNorm& layer : layers) layer.SynchronizeBatchNorm(group);
    if (downsample.has_value()) downsample->SynchronizeBatchNorm(group);
  }

  void List(const std::string& prefix, ModelTensors* tensors) const {
    for (size_t i = 0; i < layers.size(); ++i) {
      layers[i].conv.List(absl::StrCat(prefix, "conv", i + 1, "."), tensors);
      ListNorm(layers[i].norm, absl::StrCat(prefix, "bn", i + 1, "."), tensors);
    }
    if (!downsample.has_value()) return;
    downsample->conv.List(prefix + "downsample.0.", tensors);
    ListNorm(downsample->norm, prefix + "downsample.1.", tensors);
  }
};

// Of a norm other than BatchNorm: LayerNorm is one group of all channels.
int64_t NormGroups(const ResNetOptions& options) { return options.norm == "LayerNorm" ? 1 : options.groupnorm_groups; }

int64_t Scaled(const ResNetOptions& options, int64_t width) {
  return static_cast<int64_t>(std::llround(static_cast<double>(width) * options.width_multiplier));
}

// Channels of the 3x3 convolution of a bottleneck.
int64_t BottleneckWidth(const ResNetOptions& options, int64_t planes) {
  return planes * options.width_per_group / 64 * options.groups;
}

// Builds the layers in the order of the state dict, so that a seed always gives the same weights.
class Builder {
 public:
  Builder(const ResNetOptions& options, const DepthSpec& spec, int64_t seed)
      : options_(options),
        spec_(spec),
        init_(options.init == "kaiming_fan_out" ? ConvInit::kKaimingFanOut : ConvInit::kKaimingUniform),
        generator_(MakeGenerator(seed)) {}

  int64_t StemWidth() const { return Scaled(options_, 64); }

  ConvNorm MakeConvNorm(const ConvShape& shape) {
    ConvLayer conv = MakeConv(shape, init_, generator_);
    if (options_.norm == "BatchNorm") return {std::move(conv), MakeBatchNorm(shape.out)};
    return {std::move(conv), MakeGroupNorm(shape.out, NormGroups(options_))};
  }

  ConvNorm MakeStem() {
    const bool small = options_.stem == "small";
    const int64_t own_stride = small ? 1 : 2;
    const int64_t stride = options_.stem_stride > 0 ? options_.stem_stride : own_stride;
    return MakeConvNorm({options_.input_channels, StemWidth(), small ? 3 : 7, stride, 1});
  }

  // stage: 0 ... 3. *channels: of the input, then of the output.
  std::vector<Block> MakeStage(int64_t stage, int64_t* channels) {
    const int64_t planes = Scaled(options_, 64 << stage);
    const int64_t stage_stride = stage == 0 ? 1 : (stage == 3 ? options_.layer4_stride : 2);
    std::vector<Block> blocks;
    for (int64_t i = 0; i < spec_.blocks[static_cast<size_t>(stage)]; ++i) {
      blocks.push_back(MakeBlock(*channels, planes, i == 0 ? stage_stride : 1));
      *channels = planes * (spec_.bottleneck ? kBottleneckExpansion : 1);
    }
    return blocks;
  }

 private:
  Block MakeBlock(int64_t in, int64_t planes, int64_t stride) {
    Block block;
    const int64_t out = planes * (spec_.bottleneck ? kBottleneckExpansion : 1);
    if (spec_.bottleneck) {
      const int64_t width = BottleneckWidth(options_, planes);
      block.layers.push_back(MakeConvNorm({in, width, 1, 1, 1}));
      block.layers.push_back(MakeConvNorm({width, width, 3, stride, options_.groups}));
      block.layers.push_back(MakeConvNorm({width, out, 1, 1, 1}));
    } else {
      block.layers.push_back(MakeConvNorm({in, planes, 3, stride, 1}));
      block.layers.push_back(MakeConvNorm({planes, planes, 3, 1, 1}));
    }
    if (stride != 1 || in != out) block.downsample = MakeConvNorm({in, out, 1, stride, 1});
    if (options_.zero_init_residual) ZeroNormWeight(block.layers.back().norm);
    return block;
  }

  const ResNetOptions& options_;
  const DepthSpec& spec_;
  const ConvInit init_;
  at::Generator generator_;
};

std::vector<Stage> Stages(const ResNetOptions& options, const DepthSpec& spec) {
  std::vector<Stage> stages = {{"conv1", 1}, {"res1", 1}};
  for (int64_t i = 0; i < options.stages; ++i) {
    stages.push_back({absl::StrCat("res", i + 2), static_cast<size_t>(spec.blocks[static_cast<size_t>(i)])});
  }
  return stages;
}

// A residual block, and the prefix of its tensors.
struct NamedBlock {
  std::string prefix;
  Block block;
};

// Blocks: stem, pooling, then the residual ones.
class ResNet : public StagedTrunk {
 public:
  ResNet(const ResNetOptions& options, const DepthSpec& spec, int64_t seed)
      : StagedTrunk(Stages(options, spec), absl::StrCat("res", options.stages + 1, "avg")),
        max_pool_(options.max_pool) {
    Builder builder(options, spec, seed);
    stem_ = builder.MakeStem();
    output_dim_ = builder.StemWidth();
    for (int64_t stage = 0; stage < options.stages; ++stage) {
      std::vector<Block> blocks = builder.MakeStage(stage, &output_dim_);
      for (size_t i = 0; i < blocks.size(); ++i) {
        blocks_.push_back({absl::StrCat("layer", stage + 1, ".", i, "."), std::move(blocks[i])});
      }
    }
  }

  int64_t output_dim() const override { return output_dim_; }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    stem_.SynchronizeBatchNorm(group);
    for (NamedBlock& named : blocks_) named.block.SynchronizeBatchNorm(group);
  }

  at::Tensor RunBlock(size_t index, const at::Tensor& input, NormMode mode) const override {
    if (index == 0) return stem_.ForwardRelu(input, at::Tensor(), mode);
    if (index == 1) return max_pool_ ? at::max_pool2d(input, {3, 3}, {2, 2}, {1, 1}) : input;
    return blocks_[index - kBlocksBefore].block.Forward(input, mode);
  }

  ModelTensors BlockTensors(size_t index) const override {
    ModelTensors tensors;
    if (index == 0) {
      stem_.conv.List("conv1.", &tensors);
      ListNorm(stem_.norm, "bn1.", &tensors);
    } else if (index >= kBlocksBefore) {
      const NamedBlock& named = blocks_[index - kBlocksBefore];
      named.block.List(named.prefix, &tensors);
    }
    return tensors;
  }

 private:
  static constexpr size_t kBlocksBefore = 2;  // the residual ones

  const bool max_pool_;
  ConvNorm stem_;
  std::vector<NamedBlock> blocks_;
  int64_t output_dim_ = 0;
};

// Every normalised width must be a multiple of the groups.
absl::Status CheckNormGroups(const ResNetOptions& options, bool bottleneck) {
  if (options.norm == "BatchNorm") return absl::OkStatus();
  const int64_t groups = NormGroups(options);
  for (int64_t stage = 0; stage < options.stages; ++stage) {
    const int64_t planes = Scaled(options, 64 << stage);
    for (const int64_t width : {planes, bottleneck ? BottleneckWidth(options, planes) : planes}) {
      if (width % groups == 0) continue;
      return absl::InvalidArgumentError(absl::StrCat("config.MODEL.TRUNK.RESNETS.GROUPNORM_GROUPS is ", groups,
                                                     ", which does not divide the ", width, " channels of stage ",
                                                     stage + 1));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Trunk>> ResNetFactory(const ConfigNode& params, const BuildContext& context) {
  ResNetOptions options;
  if (const ConfigNode* node = params.Find("RESNETS")) {
    SSL_RETURN_IF_ERROR(ReadOptions(*node, "config.MODEL.TRUNK.RESNETS", UnknownKeys::kIgnore, &options));
  }
  options.input_channels = InputChannels(context.config);
  return MakeResNet(options, context.seed);
}

}  // namespace

void ResNetOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("DEPTH", &depth, Doc("Layers: 18, 34, 50, 101, 152 or 200."));
  visitor.Field("WIDTH_MULTIPLIER", &width_multiplier, Doc("Multiplies the width of every layer.").Above(0));
  visitor.Field(
      "NORM", &norm,
      Doc("Normalisation; LayerNorm is GroupNorm with one group.").OneOf({"BatchNorm", "LayerNorm", "GroupNorm"}));
  visitor.Field("GROUPNORM_GROUPS", &groupnorm_groups, Doc("Groups of channels with NORM: GroupNorm.").AtLeast(1));
  visitor.Field("STANDARDIZE_CONVOLUTIONS", &standardize_convolutions, Doc("Has no effect, as in VISSL."));
  visitor.Field("GROUPS", &groups, Doc("Groups of the 3x3 convolutions of bottlenecks (ResNeXt).").AtLeast(1));
  visitor.Field("WIDTH_PER_GROUP", &width_per_group, Doc("Channels of a group, at 64 planes.").AtLeast(1));
  visitor.Field("ZERO_INIT_RESIDUAL", &zero_init_residual, Doc("Starts with the last norm of each block at zero."));
  visitor.Field("LAYER4_STRIDE", &layer4_stride, Doc("Stride of the last stage.").Between(1, 2));
  visitor.Field("STEM", &stem, Doc("First convolution: 7x7 (imagenet) or 3x3 (small).").OneOf({"imagenet", "small"}));
  visitor.Field("STEM_STRIDE", &stem_stride, Doc("Stride of the stem; 0: 2 for imagenet, 1 for small.").Between(0, 4));
  visitor.Field("MAXPOOL", &max_pool, Doc("Max-pools the output of the stem, 3x3 with stride 2."));
  visitor.Field("STAGES", &stages, Doc("Stages; features end at res<STAGES+1>.").Between(1, 4));
  visitor.Field("INIT", &init,
                Doc("Initial convolution weights; kaiming_fan_out is torchvision's.")
                    .OneOf({"kaiming_uniform", "kaiming_fan_out"}));
}

absl::StatusOr<std::unique_ptr<Trunk>> MakeResNet(const ResNetOptions& options, int64_t seed) {
  const auto spec = Depths().find(options.depth);
  if (spec == Depths().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.MODEL.TRUNK.RESNETS.DEPTH is ", options.depth, ", expected 18, 34, 50, 101, 152 or 200"));
  }
  if (!spec->second.bottleneck && (options.groups != 1 || options.width_per_group != 64)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "config.MODEL.TRUNK.RESNETS.GROUPS is ", options.groups, " and WIDTH_PER_GROUP ", options.width_per_group,
        ", expected 1 and 64 at DEPTH ", options.depth, ": it has no bottlenecks"));
  }
  if (std::llround(64 * options.width_multiplier) < 1) {
    return absl::InvalidArgumentError(absl::StrCat("config.MODEL.TRUNK.RESNETS.WIDTH_MULTIPLIER is ",
                                                   options.width_multiplier, ", which leaves no channels"));
  }
  SSL_RETURN_IF_ERROR(CheckNormGroups(options, spec->second.bottleneck));
  return std::make_unique<ResNet>(options, spec->second, seed);
}

absl::Status RegisterResNet(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->trunks.Register("resnet", &ResNetFactory));
  return registries->options.Add("MODEL.TRUNK.RESNETS", [] { return std::make_unique<ResNetOptions>(); });
}

}  // namespace ssl
