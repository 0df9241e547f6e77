// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/regnet.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include <cmath>
#include <optional>
#include <string>
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

// map * sigmoid(expand(relu(squeeze(mean of the map's pixels)))); both are 1x1 convolutions in the state.
struct SqueezeExcitation {
  ConvLayer squeeze;
  ConvLayer expand;

  at::Tensor Forward(const at::Tensor& map) const {
    const at::Tensor hidden = Rows(squeeze, map.mean({2, 3})).relu_();
    return map * Rows(expand, hidden).sigmoid_().unsqueeze(2).unsqueeze(3);
  }

  void List(const std::string& prefix, ModelTensors* tensors) const {
    squeeze.List(prefix + "excitation.0.", tensors);
    expand.List(prefix + "excitation.2.", tensors);
  }

 private:
  static at::Tensor Rows(const ConvLayer& layer, const at::Tensor& input) {
    return at::linear(input, layer.weight.flatten(1), layer.bias);
  }
};

// relu(shortcut(x) + c(se(b(a(x))))).
struct Block {
  std::optional<ConvNorm> projection;
  ConvNorm a;
  ConvNorm b;
  std::optional<SqueezeExcitation> excitation;
  ConvNorm c;

  at::Tensor Forward(const at::Tensor& input, NormMode mode) const {
    at::Tensor output = b.ForwardRelu(a.ForwardRelu(input, at::Tensor(), mode), at::Tensor(), mode);
    if (excitation.has_value()) output = excitation->Forward(output);
    const at::Tensor shortcut = projection.has_value() ? projection->Forward(input, mode) : input;
    return c.ForwardRelu(output, shortcut, mode);
  }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) {
    for (ConvNorm* layer : {&a, &b, &c}) layer->SynchronizeBatchNorm(group);
    if (projection.has_value()) projection->SynchronizeBatchNorm(group);
  }

  void List(const std::string& prefix, ModelTensors* tensors) const {
    if (projection.has_value()) {
      projection->conv.List(prefix + "proj.", tensors);
      ListNorm(projection->norm, prefix + "bn.", tensors);
    }
    for (const auto& [name, layer] : {std::make_pair("f.a.", &a), std::make_pair("f.b.", &b)}) {
      layer->conv.List(absl::StrCat(prefix, name, "0."), tensors);
      ListNorm(layer->norm, absl::StrCat(prefix, name, "1."), tensors);
    }
    if (excitation.has_value()) excitation->List(prefix + "f.se.", tensors);
    c.conv.List(prefix + "f.c.", tensors);
    ListNorm(c.norm, prefix + "f.final_bn.", tensors);
  }
};

// Builds the layers in the order of the state dict, so that a seed always gives the same weights.
class Builder {
 public:
  Builder(const RegNetOptions& options, int64_t seed) : options_(options), generator_(MakeGenerator(seed)) {}

  ConvNorm MakeStem() { return MakeConvNorm({options_.input_channels, options_.stem_width, 3, 2, 1}); }

  Block MakeBlock(int64_t in, const RegNetStage& stage, int64_t stride) {
    Block block;
    if (in != stage.width || stride != 1) block.projection = MakeConvNorm({in, stage.width, 1, stride, 1});
    block.a = MakeConvNorm({in, stage.bottleneck_width, 1, 1, 1});
    block.b = MakeConvNorm({stage.bottleneck_width, stage.bottleneck_width, 3, stride, stage.groups});
    if (options_.use_se) {
      const auto squeezed = static_cast<int64_t>(std::nearbyint(options_.se_ratio * static_cast<double>(in)));
      block.excitation = SqueezeExcitation();
      block.excitation->squeeze = MakePointwise(stage.bottleneck_width, squeezed);
      block.excitation->expand = MakePointwise(squeezed, stage.bottleneck_width);
    }
    block.c = MakeConvNorm({stage.bottleneck_width, stage.width, 1, 1, 1});
    return block;
  }

 private:
  ConvNorm MakeConvNorm(const ConvShape& shape) {
    return {MakeConv(shape, ConvInit::kKaimingFanOut, generator_),
            MakeBatchNorm(shape.out, options_.bn_epsilon, options_.bn_momentum)};
  }

  // With a bias, uniform in +-1/sqrt(in).
  ConvLayer MakePointwise(int64_t in, int64_t out) {
    ConvLayer layer = MakeConv({in, out, 1, 1, 1}, ConvInit::kKaimingFanOut, generator_);
    const double bound = 1.0 / std::sqrt(static_cast<double>(in));
    layer.bias = at::empty({out}, at::kFloat).uniform_(-bound, bound, generator_).requires_grad_();
    return layer;
  }

  const RegNetOptions& options_;
  at::Generator generator_;
};

std::vector<Stage> StagesOf(const std::vector<RegNetStage>& regnet) {
  std::vector<Stage> stages = {{"conv1", 1}};
  for (const RegNetStage& stage : regnet) {
    stages.push_back({absl::StrCat("res", stages.size() + 1), static_cast<size_t>(stage.blocks)});
  }
  return stages;
}

// A residual block, and the prefix of its tensors.
struct NamedBlock {
  std::string prefix;
  Block block;
};

// Blocks: stem, then the residual ones.
class RegNet : public StagedTrunk {
 public:
  RegNet(const RegNetOptions& options, const std::vector<RegNetStage>& stages, int64_t seed)
      : StagedTrunk(StagesOf(stages), "avgpool"), output_dim_(options.stem_width) {
    Builder builder(options, seed);
    stem_ = builder.MakeStem();
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      for (int64_t i = 0; i < stages[stage].blocks; ++i) {
        blocks_.push_back({absl::StrCat("res", stage + 2, ".block", stage + 1, "-", i, "."),
                           builder.MakeBlock(output_dim_, stages[stage], i == 0 ? stages[stage].stride : 1)});
        output_dim_ = stages[stage].width;
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
    return blocks_[index - 1].block.Forward(input, mode);
  }

  ModelTensors BlockTensors(size_t index) const override {
    ModelTensors tensors;
    if (index == 0) {
      stem_.conv.List("conv1.stem.0.", &tensors);
      ListNorm(stem_.norm, "conv1.stem.1.", &tensors);
    } else {
      blocks_[index - 1].block.List(blocks_[index - 1].prefix, &tensors);
    }
    return tensors;
  }

 private:
  ConvNorm stem_;
  std::vector<NamedBlock> blocks_;
  int64_t output_dim_;
};

absl::StatusOr<std::unique_ptr<Trunk>> RegNetFactory(const ConfigNode& params, const BuildContext& context) {
  RegNetOptions options;
  SSL_RETURN_IF_ERROR(
      ReadOptions(params.Section("REGNET"), "config.MODEL.TRUNK.REGNET", UnknownKeys::kIgnore, &options));
  options.input_channels = InputChannels(context.config);
  return MakeRegNet(options, context.seed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trunk>> MakeRegNet(const RegNetOptions& options, int64_t seed) {
  SSL_ASSIGN_OR_RETURN(const RegNetOptions resolved, ResolveRegNetPreset(options));
  SSL_ASSIGN_OR_RETURN(const std::vector<RegNetStage> stages, RegNetStages(resolved));
  return std::make_unique<RegNet>(resolved, stages, seed);
}

absl::Status RegisterRegNet(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->trunks.Register("regnet", &RegNetFactory));
  SSL_RETURN_IF_ERROR(registries->trunks.Register("regnet_fsdp", &RegNetFactory));
  return registries->options.Add("MODEL.TRUNK.REGNET", [] { return std::make_unique<RegNetOptions>(); });
}

}  // namespace ssl
