// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/vision_transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/registries.h"
#include "ssl/models/layers.h"
#include "ssl/models/model_section.h"
#include "ssl/models/self_attention.h"
#include "ssl/models/transformer_layers.h"
#include "ssl/models/trunks/block_chain.h"
#include "ssl/models/trunks/position_embedding.h"
#include "ssl/models/trunks/token_features.h"
#include "ssl/models/trunks/transformer_options.h"

namespace ssl {
namespace {

constexpr char kSection[] = "VISION_TRANSFORMERS";
constexpr char kPath[] = "config.MODEL.TRUNK.VISION_TRANSFORMERS";

// x + attention(norm(x)), then x + feed_forward(norm(x)).
struct Block {
  LayerNormLayer norm1;
  SelfAttention attention;
  LayerNormLayer norm2;
  FeedForward feed_forward;
  double drop_path_rate = 0.0;

  at::Tensor Forward(const at::Tensor& input, bool training) const {
    const at::Tensor attended = attention.Forward(norm1.Forward(input), training);
    const at::Tensor middle = input + DropPath(attended, drop_path_rate, training);
    const at::Tensor fed = feed_forward.Forward(norm2.Forward(middle), training);
    return middle + DropPath(fed, drop_path_rate, training);
  }

  void List(const std::string& prefix, ModelTensors* tensors) const {
    norm1.List(prefix + "norm1.", tensors);
    attention.List(prefix + "attn.", tensors);
    norm2.List(prefix + "norm2.", tensors);
    feed_forward.List(prefix + "mlp.", tensors);
  }
};

// Patches as tokens, with a class token in front, and with positions.
struct Embedding {
  at::Tensor class_token;  // [1, 1, width]; undefined without one
  at::Tensor positions;    // [1, class token + patches, width]
  ConvLayer projection;
  PatchGrid grid;
  double dropout_rate = 0.0;

  int64_t class_tokens() const { return class_token.defined() ? 1 : 0; }

  PatchGrid GridOf(const at::Tensor& images) const {
    return {images.size(2) / projection.stride, images.size(3) / projection.stride};
  }

  at::Tensor Forward(const at::Tensor& images, bool training) const {
    const PatchGrid target = GridOf(images);
    TORCH_CHECK_VALUE(target.size() > 0, "images of ", images.size(2), "x", images.size(3), " pixels have no patch of ",
                      projection.stride, " (", kPath, ".PATCH_SIZE)");
    at::Tensor tokens = projection.Forward(images).flatten(2).transpose(1, 2);
    if (class_token.defined()) tokens = at::cat({class_token.expand({images.size(0), -1, -1}), tokens}, 1);
    tokens = tokens + InterpolatePositions(positions, class_tokens(), grid, target);
    return at::dropout(tokens, dropout_rate, training);
  }

  void List(ModelTensors* tensors) const {
    if (class_token.defined()) tensors->push_back({"cls_token", class_token, TensorRole::kWeight});
    tensors->push_back({"pos_embed", positions, TensorRole::kWeight});
    projection.List("patch_embed.proj.", tensors);
  }
};

Embedding MakeEmbedding(const VisionTransformerOptions& options, at::Generator& generator) {
  Embedding embedding;
  const int64_t side = options.image_size / options.patch_size;
  embedding.grid = {side, side};
  embedding.dropout_rate = options.dropout_rate;
  if (options.use_class_token) {
    embedding.class_token = TruncatedNormal({1, 1, options.hidden_dim}, generator).requires_grad_();
  }
  const int64_t tokens = embedding.grid.size() + embedding.class_tokens();
  embedding.positions = TruncatedNormal({1, tokens, options.hidden_dim}, generator).requires_grad_();
  embedding.projection = MakeBiasedConv(
      {options.input_channels, options.hidden_dim, options.patch_size, options.patch_size, /*groups=*/1}, generator);
  embedding.projection.padding = 0;
  return embedding;
}

class VisionTransformer : public BlockChain {
 public:
  // scale: of queries and keys; 0: the usual one.
  VisionTransformer(const VisionTransformerOptions& options, double scale, int64_t seed)
      : output_dim_(options.hidden_dim),
        features_(AllTokenFeatures(static_cast<size_t>(options.num_layers), options.use_class_token)) {
    at::Generator generator = MakeGenerator(seed);
    embedding_ = MakeEmbedding(options, generator);
    const AttentionShape shape = {options.hidden_dim,   options.num_heads,
                                  options.qkv_bias,     scale,
                                  options.dropout_rate, options.attention_dropout_rate};
    for (int64_t i = 0; i < options.num_layers; ++i) {
      Block& block = blocks_.emplace_back();
      block.norm1 = MakeLayerNorm(options.hidden_dim);
      block.attention = MakeSelfAttention(shape, generator);
      block.norm2 = MakeLayerNorm(options.hidden_dim);
      block.feed_forward = MakeFeedForward(options.hidden_dim, options.mlp_dim, options.dropout_rate, generator);
      const auto last = static_cast<double>(std::max<int64_t>(1, options.num_layers - 1));
      block.drop_path_rate = options.drop_path_rate * static_cast<double>(i) / last;
    }
    norm_ = MakeLayerNorm(options.hidden_dim);
  }

  int64_t output_dim() const override { return output_dim_; }
  std::vector<std::string> feature_names() const override { return NamesOfFeatures(features_); }
  void SynchronizeBatchNorm(const std::shared_ptr<Communicator>&) override {}  // it has none

  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<std::string>& names) override {
    const std::vector<TokenFeature> chosen = ChooseTokenFeatures(features_, names);
    std::vector<bool> is_read(blocks_.size());
    size_t end = 0;
    for (const TokenFeature& feature : chosen) {
      for (const size_t block : feature.blocks) is_read[block] = true;
      end = std::max(end, feature.blocks.back() + 1);
    }
    at::Tensor tokens = RunRange({0, 1}, images);
    std::vector<at::Tensor> normalised(blocks_.size());
    for (size_t block = 0; block < end; ++block) {
      tokens = RunRange({block + 1, block + 2}, tokens);
      if (is_read[block]) normalised[block] = RunRange({NormIndex(), NormIndex() + 1}, tokens);
    }
    std::vector<at::Tensor> features;
    for (const TokenFeature& feature : chosen) {
      features.push_back(FormTokenFeature(feature, normalised, embedding_.GridOf(images)));
    }
    return features;
  }

  size_t num_blocks() const override { return blocks_.size() + 2; }

  at::Tensor RunBlock(size_t index, const at::Tensor& input, NormMode mode) const override {
    const bool training = mode != NormMode::kEvaluation;
    if (index == 0) return embedding_.Forward(input, training);
    return index == NormIndex() ? norm_.Forward(input) : blocks_[index - 1].Forward(input, training);
  }

  at::Tensor PoolOutput(const at::Tensor& last) const override {
    return embedding_.class_token.defined() ? last.select(1, 0) : last.mean(1);
  }

  ModelTensors BlockTensors(size_t index) const override {
    ModelTensors tensors;
    if (index == 0) {
      embedding_.List(&tensors);
    } else if (index == NormIndex()) {
      norm_.List("norm.", &tensors);
    } else {
      blocks_[index - 1].List(absl::StrCat("blocks.", index - 1, "."), &tensors);
    }
    return tensors;
  }

  std::vector<std::string> block_names() const override {
    std::vector<std::string> names = {"patch_embed"};
    for (size_t i = 0; i < blocks_.size(); ++i) names.push_back(absl::StrCat("blocks.", i));
    names.push_back("norm");
    return names;
  }

 private:
  size_t NormIndex() const { return blocks_.size() + 1; }

  const int64_t output_dim_;
  const std::vector<TokenFeature> features_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  LayerNormLayer norm_;
};

absl::Status CheckOptions(const VisionTransformerOptions& options) {
  if (options.hidden_dim % options.num_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(kPath, ".HIDDEN_DIM is ", options.hidden_dim,
                                                   ", expected a multiple of NUM_HEADS, ", options.num_heads));
  }
  if (options.image_size < options.patch_size) {
    return absl::InvalidArgumentError(absl::StrCat(kPath, ".IMAGE_SIZE is ", options.image_size,
                                                   ", expected at least PATCH_SIZE, ", options.patch_size));
  }
  return absl::OkStatus();
}

absl::Status CheckNoMasks(const VisionTransformerOptions& options, const ConfigNode& section) {
  const std::string& name = options.masked_image_modeling.name;
  if (name.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(section.FindPath("MASKED_IMAGE_MODELING.NAME")->location().ToString(),
                                               ": ", kPath, ".MASKED_IMAGE_MODELING.NAME is '", name,
                                               "', expected '': no trunk here takes masks"));
}

absl::StatusOr<std::unique_ptr<Trunk>> VisionTransformerFactory(const ConfigNode& params, const BuildContext& context) {
  VisionTransformerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params.Section(kSection), kPath, UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckNoMasks(options, params.Section(kSection)));
  options.input_channels = InputChannels(context.config);
  return MakeVisionTransformer(options, context.seed);
}

}  // namespace

void MaskedImageModelingSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("NAME", &name, Doc("ibot or msn: not here."));
  visitor.Field("PARAMS", &params, Doc("Of masked image modelling: not here."));
}

void VisionTransformerOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("name", &name, Doc("A label without effect, as in VISSL."));
  visitor.Field("IMAGE_SIZE", &image_size, Doc("Side of the images that positions are learned for.").AtLeast(1));
  visitor.Field("PATCH_SIZE", &patch_size, Doc("Side of a patch.").AtLeast(1));
  visitor.Field("NUM_LAYERS", &num_layers, Doc("Blocks.").AtLeast(1));
  visitor.Field("NUM_HEADS", &num_heads, Doc("Heads of attention; they divide HIDDEN_DIM.").AtLeast(1));
  visitor.Field("HIDDEN_DIM", &hidden_dim, Doc("Width of tokens, and of the output.").AtLeast(1));
  visitor.Field("MLP_DIM", &mlp_dim, Doc("Width of the hidden feed-forward layer.").AtLeast(1));
  visitor.Field("DROPOUT_RATE", &dropout_rate, Doc(kDropoutDoc).Between(0, 1));
  visitor.Field("ATTENTION_DROPOUT_RATE", &attention_dropout_rate, Doc(kAttentionDropoutDoc).Between(0, 1));
  visitor.Field("DROP_PATH_RATE", &drop_path_rate,
                Doc("Share of images for which training skips a branch of the last block; less, linearly, before it.")
                    .Between(0, kMostDropPath));
  visitor.Field("CLASSIFIER", &classifier,
                Doc("Without effect, as in VISSL; USE_CLASS_TOKEN chooses.").OneOf({"token"}));
  visitor.Field("USE_CLASS_TOKEN", &use_class_token,
                Doc("The output is a class token's; else the mean of the patches'."));
  visitor.Field("QKV_BIAS", &qkv_bias, Doc("Queries, keys and values have a bias."));
  visitor.Field("QK_SCALE", &qk_scale, Doc(kScaleDoc));
  visitor.Field("CHECKPOINT_MLP", &checkpoint_mlp, Doc("As CHECKPOINT_BLOCK; VISSL runs less again.").MayChange());
  visitor.Field("CHECKPOINT_BLOCK", &checkpoint_block, Doc(kRecomputedDoc).MayChange());
  visitor.Section("MASKED_IMAGE_MODELING", &masked_image_modeling, Doc("Training with masked patches: not here."));
}

absl::StatusOr<std::unique_ptr<Trunk>> MakeVisionTransformer(const VisionTransformerOptions& options, int64_t seed) {
  SSL_RETURN_IF_ERROR(CheckOptions(options));
  SSL_ASSIGN_OR_RETURN(const double scale, ReadScale(options.qk_scale, absl::StrCat(kPath, ".QK_SCALE")));
  return std::make_unique<VisionTransformer>(options, scale, seed);
}

absl::Status RegisterVisionTransformer(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->trunks.Register("vision_transformer", &VisionTransformerFactory));
  SSL_RETURN_IF_ERROR(registries->trunks.Register("vision_transformer_fsdp", &VisionTransformerFactory));
  registries->resolvers.push_back([](const Registries&, ConfigNode* config) {
    WarnOfCropSizes("vision_transformer", kSection, *config);
    return RecomputeBlocksIfSet("vision_transformer", kSection, {"CHECKPOINT_MLP", "CHECKPOINT_BLOCK"}, config);
  });
  return registries->options.Add("MODEL.TRUNK.VISION_TRANSFORMERS",
                                 [] { return std::make_unique<VisionTransformerOptions>(); });
}

}  // namespace ssl
