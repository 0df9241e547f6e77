// SPDX-License-Identifier: Apache-2.0
//
// The vision transformer (arXiv 2010.11929), MODEL.TRUNK.NAME: vision_transformer, as VISSL has it from timm and DeiT:
// norms before attention and feed-forward layers, learned positions, a class token whose last, normalised state is the
// output. Images of other sizes than IMAGE_SIZE get interpolated positions.
//
// Parameters have VISSL's names, which are timm's: "cls_token", "pos_embed", "patch_embed.proj.weight",
// "blocks.0.attn.qkv.weight", "norm.weight". Features: token_features.h. Blocks: "patch_embed", "blocks.0" ..., "norm".
#ifndef SSL_MODELS_TRUNKS_VISION_TRANSFORMER_H_
#define SSL_MODELS_TRUNKS_VISION_TRANSFORMER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/models/trunk.h"

namespace ssl {

struct Registries;

// MODEL.TRUNK.VISION_TRANSFORMERS.MASKED_IMAGE_MODELING: VISSL's, not here.
struct MaskedImageModelingSection : public Options {
  std::string name;
  ConfigNode params = ConfigNode::Map();

  void VisitFields(FieldVisitor& visitor) override;
};

// MODEL.TRUNK.VISION_TRANSFORMERS.
struct VisionTransformerOptions : public Options {
  std::string name;
  int64_t image_size = 224;
  int64_t patch_size = 16;
  int64_t num_layers = 12;
  int64_t num_heads = 12;
  int64_t hidden_dim = 768;
  int64_t mlp_dim = 3072;
  double dropout_rate = 0.0;
  double attention_dropout_rate = 0.0;
  double drop_path_rate = 0.0;
  std::string classifier = "token";
  bool use_class_token = true;
  bool qkv_bias = false;
  ConfigNode qk_scale = ConfigNode::FromBool(false);  // false, null, or a number
  bool checkpoint_mlp = false;
  bool checkpoint_block = false;
  MaskedImageModelingSection masked_image_modeling;
  int64_t input_channels = 3;  // no key: follows from MODEL.INPUT_TYPE

  void VisitFields(FieldVisitor& visitor) override;
};

// Initialised from `seed` alone. InvalidArgument when the options contradict each other.
absl::StatusOr<std::unique_ptr<Trunk>> MakeVisionTransformer(const VisionTransformerOptions& options, int64_t seed);

// Adds the trunk "vision_transformer", as "vision_transformer_fsdp", too, its section, and what its CHECKPOINT_* keys
// mean. The trunk is Unimplemented with masked image modelling.
absl::Status RegisterVisionTransformer(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_VISION_TRANSFORMER_H_
