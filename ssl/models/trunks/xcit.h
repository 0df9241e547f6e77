// SPDX-License-Identifier: Apache-2.0
//
// The cross-covariance image transformer, XCiT (arXiv 2106.09681), MODEL.TRUNK.NAME: xcit: attention between channels
// instead of places, so that time and memory grow with the number of patches, not with its square. Two blocks of class
// attention read the patches for the output. Any resolution.
//
// Parameters and buffers have the names of the authors' code, which VISSL has: "cls_token",
// "patch_embed.proj.0.0.weight", "pos_embeder.token_projection.weight", "blocks.0.attn.temperature",
// "cls_attn_blocks.0.attn.qkv.weight", "norm.weight". Features: "lastMAP" [B, C, h, w] and "lastCLS" [B, C]
// (token_features.h). Blocks: "patch_embed", "blocks.0" ..., "cls_attn_blocks.0" ..., "norm".
#ifndef SSL_MODELS_TRUNKS_XCIT_H_
#define SSL_MODELS_TRUNKS_XCIT_H_

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

// MODEL.TRUNK.XCIT.
struct XcitOptions : public Options {
  std::string name;
  int64_t image_size = 224;
  int64_t patch_size = 16;
  int64_t hidden_dim = 384;
  int64_t num_layers = 12;
  int64_t num_heads = 8;
  double mlp_ratio = 4.0;
  double dropout_rate = 0.0;
  double attention_dropout_rate = 0.0;
  double drop_path_rate = 0.05;
  double eta = 1.0;
  bool tokens_norm = true;
  bool qkv_bias = true;
  ConfigNode qk_scale = ConfigNode::FromBool(false);  // false, null, or a number
  bool checkpoint_xca_block = false;
  bool checkpoint_attn_block = false;
  int64_t input_channels = 3;  // no key: follows from MODEL.INPUT_TYPE

  void VisitFields(FieldVisitor& visitor) override;
};

// Initialised from `seed` alone. InvalidArgument when the options contradict each other.
absl::StatusOr<std::unique_ptr<Trunk>> MakeXcit(const XcitOptions& options, int64_t seed);

// Adds the trunk "xcit", as "xcit_fsdp", too, its section, and what its CHECKPOINT_* keys mean.
absl::Status RegisterXcit(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_XCIT_H_
