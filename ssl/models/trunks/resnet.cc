// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/resnet.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/batch_norm_relu.h"
#include "ssl/models/layers.h"

namespace ssl {
namespace {

constexpr int64_t kInputChannels = 3;
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

// A convolution and its normalisation.
struct ConvNorm {
  ConvLayer conv;
  BatchNormLayer norm;

  at::Tensor Forward(const at::Tensor& input, bool training) const {
    return norm.Forward(conv.Forward(input), training);
  }

  // relu(norm(conv(input)) + shortcut); shortcut may be undefined. In-place operations touch only the output of
  // batch norm, whose backward does not read it.
  at::Tensor ForwardRelu(const at::Tensor& input, const at::Tensor& shortcut, bool training) const {
    const at::Tensor map = conv.Forward(input);
    if (training && CanFuseBatchNormRelu(norm, map, shortcut)) return BatchNormRelu(norm, map, shortcut);
    at::Tensor output = norm.Forward(map, training);
    if (shortcut.defined()) output.add_(shortcut);
    return output.relu_();
  }
};

// relu(f(x) + shortcut(x)); f has two 3x3 convolutions, or 1x1, 3x3, 1x1 (bottleneck).
struct Block {
  std::vector<ConvNorm> layers;
  std::optional<ConvNorm> downsample;

  at::Tensor Forward(const at::Tensor& input, bool training) const {
    at::Tensor output = input;
    for (size_t i = 0; i + 1 < layers.size(); ++i) output = layers[i].ForwardRelu(output, at::Tensor(), training);
    const at::Tensor shortcut = downsample.has_value() ? downsample->Forward(input, training) : input;
    return layers.back().ForwardRelu(output, shortcut, training);
  }

  void List(const std::string& prefix, ModelTensors* tensors) const {
    for (size_t i = 0; i < layers.size(); ++i) {
      layers[i].conv.List(absl::StrCat(prefix, "conv", i + 1, "."), tensors);
      layers[i].norm.List(absl::StrCat(prefix, "bn", i + 1, "."), tensors);
    }
    if (!downsample.has_value()) return;
    downsample->conv.List(prefix + "downsample.0.", tensors);
    downsample->norm.List(prefix + "downsample.1.", tensors);
  }
};

// Builds the layers in the order of the state dict, so that a seed always gives the same weights.
class Builder {
 public:
  Builder(const ResNetOptions& options, const DepthSpec& spec, int64_t seed)
      : options_(options),
        spec_(spec),
        init_(options.init == "kaiming_fan_out" ? ConvInit::kKaimingFanOut : ConvInit::kKaimingUniform),
        generator_(MakeGenerator(seed)) {}

  int64_t StemWidth() const { return Scaled(64); }

  ConvNorm MakeConvNorm(const ConvShape& shape) {
    return {MakeConv(shape, init_, generator_), MakeBatchNorm(shape.out)};
  }

  ConvNorm MakeStem() {
    const bool small = options_.stem == "small";
    const int64_t own_stride = small ? 1 : 2;
    const int64_t stride = options_.stem_stride > 0 ? options_.stem_stride : own_stride;
    return MakeConvNorm({kInputChannels, StemWidth(), small ? 3 : 7, stride, 1});
  }

  // stage: 0 ... 3. *channels: of the input, then of the output.
  std::vector<Block> MakeStage(int64_t stage, int64_t* channels) {
    const int64_t planes = Scaled(64 << stage);
    const int64_t stage_stride = stage == 0 ? 1 : (stage == 3 ? options_.layer4_stride : 2);
    std::vector<Block> blocks;
    for (int64_t i = 0; i < spec_.blocks[static_cast<size_t>(stage)]; ++i) {
      blocks.push_back(MakeBlock(*channels, planes, i == 0 ? stage_stride : 1));
      *channels = planes * (spec_.bottleneck ? kBottleneckExpansion : 1);
    }
    return blocks;
  }

 private:
  int64_t Scaled(int64_t width) const {
    return static_cast<int64_t>(std::llround(static_cast<double>(width) * options_.width_multiplier));
  }

  Block MakeBlock(int64_t in, int64_t planes, int64_t stride) {
    Block block;
    const int64_t out = planes * (spec_.bottleneck ? kBottleneckExpansion : 1);
    if (spec_.bottleneck) {
      const int64_t width = planes * options_.width_per_group / 64 * options_.groups;
      block.layers.push_back(MakeConvNorm({in, width, 1, 1, 1}));
      block.layers.push_back(MakeConvNorm({width, width, 3, stride, options_.groups}));
      block.layers.push_back(MakeConvNorm({width, out, 1, 1, 1}));
    } else {
      block.layers.push_back(MakeConvNorm({in, planes, 3, stride, 1}));
      block.layers.push_back(MakeConvNorm({planes, planes, 3, 1, 1}));
    }
    if (stride != 1 || in != out) block.downsample = MakeConvNorm({in, out, 1, stride, 1});
    if (options_.zero_init_residual) block.layers.back().norm.weight.detach().zero_();
    return block;
  }

  const ResNetOptions& options_;
  const DepthSpec& spec_;
  const ConvInit init_;
  at::Generator generator_;
};

class ResNet : public Trunk {
 public:
  ResNet(const ResNetOptions& options, const DepthSpec& spec, int64_t seed) : max_pool_(options.max_pool) {
    Builder builder(options, spec, seed);
    stem_ = builder.MakeStem();
    output_dim_ = builder.StemWidth();
    for (int64_t stage = 0; stage < options.stages; ++stage) {
      stages_.push_back(builder.MakeStage(stage, &output_dim_));
    }
  }

  at::Tensor Forward(const at::Tensor& images) override {
    at::Tensor map = images;
    for (size_t step = 0; step < num_steps(); ++step) map = RunStep(step, map);
    return Pool(map, 1);
  }

  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override {
    const std::vector<std::string> names = feature_names();
    std::vector<at::Tensor> features(requests.size());
    size_t last_step = 0;
    for (const FeatureRequest& request : requests) last_step = std::max(last_step, StepOf(request.name, names));
    at::Tensor map = images;
    for (size_t step = 0; step <= last_step; ++step) {
      map = RunStep(step, map);
      for (size_t i = 0; i < requests.size(); ++i) {
        if (StepOf(requests[i].name, names) != step) continue;
        const bool pooled = requests[i].name != names[step];
        features[i] = pooled ? Pool(map, 1) : Pool(map, requests[i].pool_size);
      }
    }
    return features;
  }

  std::vector<std::string> feature_names() const override {
    std::vector<std::string> names;
    names.push_back("conv1");
    for (size_t step = 1; step < num_steps(); ++step) names.push_back(absl::StrCat("res", step));
    names.push_back(names.back() + "avg");
    names.push_back("flatten");
    return names;
  }

  int64_t output_dim() const override { return output_dim_; }

  ModelTensors Tensors() const override {
    ModelTensors tensors;
    stem_.conv.List("conv1.", &tensors);
    stem_.norm.List("bn1.", &tensors);
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      for (size_t i = 0; i < stages_[stage].size(); ++i) {
        stages_[stage][i].List(absl::StrCat("layer", stage + 1, ".", i, "."), &tensors);
      }
    }
    return tensors;
  }

  void SetTraining(bool training) override { training_ = training; }

 private:
  // Steps: stem, pooling, stages.
  size_t num_steps() const { return 2 + stages_.size(); }

  size_t StepOf(const std::string& name, const std::vector<std::string>& names) const {
    const auto found = std::find(names.begin(), names.end(), name);
    TORCH_CHECK_VALUE(found != names.end(), "feature '", name, "' is not one of ", absl::StrJoin(names, ", "),
                      DidYouMean(name, names));
    return std::min(static_cast<size_t>(found - names.begin()), num_steps() - 1);
  }

  at::Tensor RunStep(size_t step, const at::Tensor& input) const {
    if (step == 0) return stem_.ForwardRelu(input, at::Tensor(), training_);
    if (step == 1) return max_pool_ ? at::max_pool2d(input, {3, 3}, {2, 2}, {1, 1}) : input;
    at::Tensor map = input;
    for (const Block& block : stages_[step - 2]) map = block.Forward(map, training_);
    return map;
  }

  static at::Tensor Pool(const at::Tensor& map, int64_t pool_size) {
    if (pool_size == 0) return map;
    return at::adaptive_avg_pool2d(map, {pool_size, pool_size}).flatten(1);
  }

  const bool max_pool_;
  ConvNorm stem_;
  std::vector<std::vector<Block>> stages_;
  int64_t output_dim_ = 0;
  bool training_ = true;
};

absl::StatusOr<std::unique_ptr<Trunk>> ResNetFactory(const ConfigNode& params, const BuildContext& context) {
  ResNetOptions options;
  if (const ConfigNode* node = params.Find("RESNETS")) {
    SSL_RETURN_IF_ERROR(ReadOptions(*node, "config.MODEL.TRUNK.RESNETS", UnknownKeys::kIgnore, &options));
  }
  return MakeResNet(options, context.seed);
}

}  // namespace

void ResNetOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("DEPTH", &depth, Doc("Layers: 18, 34, 50, 101, 152 or 200."));
  visitor.Field("WIDTH_MULTIPLIER", &width_multiplier, Doc("Multiplies the width of every layer.").Above(0));
  visitor.Field("NORM", &norm, Doc("Normalisation layer.").OneOf({"BatchNorm"}));
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
  return std::make_unique<ResNet>(options, spec->second, seed);
}

absl::Status RegisterResNet(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->trunks.Register("resnet", &ResNetFactory));
  return registries->options.Add("MODEL.TRUNK.RESNETS", [] { return std::make_unique<ResNetOptions>(); });
}

}  // namespace ssl
