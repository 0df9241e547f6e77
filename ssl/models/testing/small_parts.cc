// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/testing/small_parts.h"

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/distributed/local_communicator.h"

namespace ssl {
namespace {

using Texts = std::map<std::string, std::string>;

const Texts& Trunks() {
  static const auto* const sections = new Texts{
      {"regnet",
       "{REGNET: {name: anynet, depths: [1, 2], widths: [8, 16], group_widths: [4, 8], bottleneck_multipliers: [1, 1], "
       "strides: [2, 2]}}"},
      {"regnet_fsdp", "{REGNET: {depth: 3, w_0: 8, w_a: 8.0, w_m: 2.0, group_width: 8}}"},
      {"resnet", "{RESNETS: {DEPTH: 50, WIDTH_MULTIPLIER: 0.0625}}"},
      {"vision_transformer",
       "{VISION_TRANSFORMERS: {IMAGE_SIZE: 32, PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 8, MLP_DIM: "
       "12}}"},
      {"vision_transformer_fsdp",
       "{VISION_TRANSFORMERS: {IMAGE_SIZE: 64, PATCH_SIZE: 16, NUM_LAYERS: 3, NUM_HEADS: 4, HIDDEN_DIM: 8, MLP_DIM: "
       "12, QKV_BIAS: True, USE_CLASS_TOKEN: False}}"},
      {"xcit", "{XCIT: {PATCH_SIZE: 8, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 8, MLP_RATIO: 2, DROP_PATH_RATE: 0}}"},
      {"xcit_fsdp",
       "{XCIT: {PATCH_SIZE: 16, NUM_LAYERS: 1, NUM_HEADS: 4, HIDDEN_DIM: 16, DROP_PATH_RATE: 0, TOKENS_NORM: False}}"},
  };
  return *sections;
}

const Texts& Heads() {
  static const auto* const arguments = new Texts{
      {"dino_head", "{in_dim: 6, num_clusters: [7], use_bn: True, hidden_dim: 5, bottleneck_dim: 4}"},
      {"dino_head_fsdp", "{in_dim: 6, num_clusters: [7], use_bn: True, hidden_dim: 5, bottleneck_dim: 4}"},
      {"eval_mlp", "{in_channels: 6, dims: [6, 5]}"},
      {"eval_mlp_fsdp", "{in_channels: 6, dims: [6, 5]}"},
      {"identity", "{}"},
      {"mlp", "{dims: [6, 5, 4], use_bn: True, use_relu: True}"},
      {"mlp_fsdp", "{dims: [6, 5, 4], use_bn: True, use_relu: True}"},
      {"mlp_res", "{dims: [6, 6, 4], use_bn: True, use_relu: True}"},
      {"siamese_concat_view", "{num_towers: 2}"},
      {"swav_head", "{dims: [6, 5, 4], use_bn: True, num_clusters: [7, 3]}"},
      {"swav_head_fsdp", "{dims: [6, 5, 4], use_bn: True, num_clusters: [7, 3]}"},
  };
  return *arguments;
}

absl::StatusOr<std::string> Find(const Texts& texts, const std::string& kind, const std::string& name) {
  const auto found = texts.find(name);
  if (found != texts.end()) return found->second;
  return absl::NotFoundError(absl::StrCat(kind, " '", name,
                                          "' is registered, but no test has parameters for it; expected a line in "
                                          "ssl/models/testing/small_parts.cc"));
}

template <class Part>
absl::StatusOr<std::unique_ptr<Part>> Make(const Registry<Part>& registry, const Registries& registries,
                                           const std::string& name, const std::string& text, int64_t seed) {
  std::vector<std::string> warnings;
  SSL_ASSIGN_OR_RETURN(const ConfigNode params, ParseYaml(text, "small_parts.yaml", &warnings));
  const ConfigNode config = ConfigNode::Map();
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return registry.Make(name, params, {config, registries, *communicator, seed});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trunk>> MakeSmallTrunk(const Registries& registries, const std::string& name,
                                                      int64_t seed) {
  SSL_ASSIGN_OR_RETURN(const std::string section, Find(Trunks(), "trunk", name));
  return MakeTrunk(registries, name, section, seed);
}

absl::StatusOr<std::unique_ptr<Head>> MakeSmallHead(const Registries& registries, const std::string& name,
                                                    int64_t seed) {
  SSL_ASSIGN_OR_RETURN(const std::string arguments, Find(Heads(), "head", name));
  return MakeHead(registries, name, arguments, seed);
}

absl::StatusOr<std::unique_ptr<Trunk>> MakeTrunk(const Registries& registries, const std::string& name,
                                                 const std::string& section, int64_t seed) {
  return Make(registries.trunks, registries, name, section, seed);
}

absl::StatusOr<std::unique_ptr<Head>> MakeHead(const Registries& registries, const std::string& name,
                                               const std::string& arguments, int64_t seed) {
  return Make(registries.heads, registries, name, arguments, seed);
}

}  // namespace ssl
