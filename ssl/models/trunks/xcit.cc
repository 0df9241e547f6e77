// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/xcit.h"

#include <ATen/ops/cat.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/layers.h"
#include "ssl/models/model_section.h"
#include "ssl/models/trunks/block_chain.h"
#include "ssl/models/trunks/token_features.h"
#include "ssl/models/trunks/transformer_options.h"
#include "ssl/models/trunks/xcit_blocks.h"

namespace ssl {
namespace {

constexpr char kSection[] = "XCIT";
constexpr char kPath[] = "config.MODEL.TRUNK.XCIT";
constexpr int64_t kClassAttentionBlocks = 2;

int64_t MlpDim(const XcitOptions& options) {
  return static_cast<int64_t>(static_cast<double>(options.hidden_dim) * options.mlp_ratio);
}

XcitBlockShape ShapeOf(const XcitOptions& options, double scale) {
  XcitBlockShape shape;
  shape.attention = {options.hidden_dim,   options.num_heads,
                     options.qkv_bias,     scale,
                     options.dropout_rate, options.attention_dropout_rate};
  shape.mlp_dim = MlpDim(options);
  shape.drop_path_rate = options.drop_path_rate;
  shape.eta = options.eta;
  shape.tokens_norm = options.tokens_norm;
  return shape;
}

class Xcit : public BlockChain {
 public:
  Xcit(const XcitOptions& options, const XcitBlockShape& shape, int64_t seed)
      : features_({{"lastMAP", TokenFeature::Form::kMap, {0}}, {"lastCLS", TokenFeature::Form::kClassToken, {0}}}),
        output_dim_(options.hidden_dim) {
    at::Generator generator = MakeGenerator(seed);
    embedding_ = MakeConvEmbedding(options.input_channels, options.patch_size, options.hidden_dim, options.dropout_rate,
                                   generator);
    for (int64_t i = 0; i < options.num_layers; ++i) blocks_.push_back(MakeCrossCovarianceBlock(shape, generator));
    class_token_ = TruncatedNormal({1, 1, options.hidden_dim}, generator).requires_grad_();
    for (int64_t i = 0; i < kClassAttentionBlocks; ++i) {
      class_blocks_.push_back(MakeClassAttentionBlock(shape, generator));
    }
    norm_ = MakeLayerNorm(options.hidden_dim);
  }

  int64_t output_dim() const override { return output_dim_; }
  std::vector<std::string> feature_names() const override { return NamesOfFeatures(features_); }
  size_t num_blocks() const override { return NormIndex() + 1; }
  at::Tensor PoolOutput(const at::Tensor& last) const override { return last.select(1, 0); }

  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>& group) override {
    for (ConvNorm& layer : embedding_.layers) layer.SynchronizeBatchNorm(group);
    for (CrossCovarianceBlock& block : blocks_) block.interaction.norm.group = group;
  }

  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) override {
    const std::vector<TokenFeature> chosen = ChooseTokenFeatures(features_, names);
    const at::Tensor map = RunRange({0, FirstClassBlock()}, images);
    const at::Tensor tokens = RunRange({FirstClassBlock(), num_blocks()}, map);
    std::vector<at::Tensor> features;
    for (const TokenFeature& feature : chosen) {
      features.push_back(FormTokenFeature(feature, {tokens}, {map.size(2), map.size(3)}));
    }
    return features;
  }

  at::Tensor RunBlock(size_t index, const at::Tensor& input, NormMode mode) const override {
    if (index == 0) return embedding_.Forward(input, mode);
    if (index < FirstClassBlock()) return blocks_[index - 1].Forward(input, mode);
    if (index == NormIndex()) return norm_.Forward(input);
    const ClassAttentionBlock& block = class_blocks_[index - FirstClassBlock()];
    return block.Forward(index == FirstClassBlock() ? WithClassToken(input) : input, mode != NormMode::kEvaluation);
  }

  ModelTensors BlockTensors(size_t index) const override {
    ModelTensors tensors;
    if (index == 0) {
      embedding_.List(&tensors);
    } else if (index < FirstClassBlock()) {
      blocks_[index - 1].List(absl::StrCat("blocks.", index - 1, "."), &tensors);
    } else if (index == NormIndex()) {
      norm_.List("norm.", &tensors);
    } else {
      const size_t block = index - FirstClassBlock();
      if (block == 0) tensors.push_back({"cls_token", class_token_, TensorRole::kWeight});
      class_blocks_[block].List(absl::StrCat("cls_attn_blocks.", block, "."), &tensors);
    }
    return tensors;
  }

  std::vector<std::string> block_names() const override {
    std::vector<std::string> names = {"patch_embed"};
    for (size_t i = 0; i < blocks_.size(); ++i) names.push_back(absl::StrCat("blocks.", i));
    for (size_t i = 0; i < class_blocks_.size(); ++i) names.push_back(absl::StrCat("cls_attn_blocks.", i));
    names.push_back("norm");
    return names;
  }

 private:
  size_t FirstClassBlock() const { return blocks_.size() + 1; }
  size_t NormIndex() const { return FirstClassBlock() + class_blocks_.size(); }

  at::Tensor WithClassToken(const at::Tensor& map) const {
    return at::cat({class_token_.expand({map.size(0), -1, -1}), TokensOfMap(map)}, 1);
  }

  const std::vector<TokenFeature> features_;
  const int64_t output_dim_;
  ConvEmbedding embedding_;
  std::vector<CrossCovarianceBlock> blocks_;
  at::Tensor class_token_;  // [1, 1, width]
  std::vector<ClassAttentionBlock> class_blocks_;
  LayerNormLayer norm_;
};

absl::Status CheckOptions(const XcitOptions& options) {
  if (options.patch_size != 8 && options.patch_size != 16) {
    return absl::InvalidArgumentError(
        absl::StrCat(kPath, ".PATCH_SIZE is ", options.patch_size, ", expected 8 or 16: convolutions halve the image"));
  }
  for (const auto& [divisor, why] :
       {std::make_pair(options.num_heads, "NUM_HEADS"), std::make_pair(options.patch_size / 2, "half of PATCH_SIZE")}) {
    if (options.hidden_dim % divisor == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(kPath, ".HIDDEN_DIM is ", options.hidden_dim, ", expected a multiple of ", why, ", ", divisor));
  }
  if (MlpDim(options) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(kPath, ".MLP_RATIO is ", options.mlp_ratio,
                                                 ", expected at least 1 / HIDDEN_DIM, 1 / ", options.hidden_dim));
}

absl::StatusOr<std::unique_ptr<Trunk>> XcitFactory(const ConfigNode& params, const BuildContext& context) {
  XcitOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params.Section(kSection), kPath, UnknownKeys::kIgnore, &options));
  options.input_channels = InputChannels(context.config);
  return MakeXcit(options, context.seed);
}

}  // namespace

void XcitOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("name", &name, Doc("A label without effect, as in VISSL."));
  visitor.Field("IMAGE_SIZE", &image_size, Doc("Without effect: positions are computed for any size.").AtLeast(1));
  visitor.Field("PATCH_SIZE", &patch_size, Doc("Side of a patch: 8 or 16.").AtLeast(1));
  visitor.Field("HIDDEN_DIM", &hidden_dim, Doc("Width of tokens, and of the output.").AtLeast(1));
  visitor.Field("NUM_LAYERS", &num_layers, Doc("Blocks of attention between channels.").AtLeast(1));
  visitor.Field("NUM_HEADS", &num_heads, Doc("Heads of attention; they divide HIDDEN_DIM.").AtLeast(1));
  visitor.Field("MLP_RATIO", &mlp_ratio, Doc("Width of hidden feed-forward layers to HIDDEN_DIM.").Above(0));
  visitor.Field("DROPOUT_RATE", &dropout_rate, Doc(kDropoutDoc).Between(0, 1));
  visitor.Field("ATTENTION_DROPOUT_RATE", &attention_dropout_rate, Doc(kAttentionDropoutDoc).Between(0, 1));
  visitor.Field(
      "DROP_PATH_RATE", &drop_path_rate,
      Doc("Share of images for which training skips a branch of a block, of all blocks but class attention's.")
          .Between(0, kMostDropPath));
  visitor.Field("ETA", &eta, Doc("First factor of every residual branch."));
  visitor.Field("TOKENS_NORM", &tokens_norm, Doc("Class attention normalises patches as well as the class token."));
  visitor.Field("QKV_BIAS", &qkv_bias, Doc("Queries, keys and values have a bias."));
  visitor.Field(
      "QK_SCALE", &qk_scale,
      Doc("Of class attention alone: factor of queries times keys; False: 1 / sqrt(HIDDEN_DIM / NUM_HEADS)."));
  visitor.Field("CHECKPOINT_XCA_BLOCK", &checkpoint_xca_block, Doc(kRecomputedDoc).MayChange());
  visitor.Field("CHECKPOINT_ATTN_BLOCK", &checkpoint_attn_block,
                Doc("As CHECKPOINT_XCA_BLOCK; VISSL runs class attention alone again.").MayChange());
}

absl::StatusOr<std::unique_ptr<Trunk>> MakeXcit(const XcitOptions& options, int64_t seed) {
  SSL_RETURN_IF_ERROR(CheckOptions(options));
  SSL_ASSIGN_OR_RETURN(const double scale, ReadScale(options.qk_scale, absl::StrCat(kPath, ".QK_SCALE")));
  return std::make_unique<Xcit>(options, ShapeOf(options, scale), seed);
}

absl::Status RegisterXcit(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->trunks.Register("xcit", &XcitFactory));
  SSL_RETURN_IF_ERROR(registries->trunks.Register("xcit_fsdp", &XcitFactory));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) {
    WarnOfCropSizes("xcit", kSection, *config);
    return RecomputeBlocksIfSet("xcit", kSection, {"CHECKPOINT_XCA_BLOCK", "CHECKPOINT_ATTN_BLOCK"}, config);
  });
  return registries->options.Add("MODEL.TRUNK.XCIT", [] { return std::make_unique<XcitOptions>(); });
}

}  // namespace ssl
