// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/layer_decay_grouper.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "re2/re2.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/optimizer_options.h"
#include "ssl/optim/parameter_rules.h"

namespace ssl {
namespace {

// How a kind of trunk is divided into layers.
struct Scheme {
  int64_t (*num_layers)(const std::vector<NamedParameter>& parameters);
  int64_t (*depth)(const std::string& name, int64_t num_layers);
  bool (*regularized)(const std::string& name, const OptimizerOptions& options);
};

// The number of the transformer block that `name` is part of; -1 outside blocks.
int64_t BlockOf(const std::string& name) {
  int64_t block = -1;
  RE2::PartialMatch(name, R"(blocks\.([0-9]+)\.)", &block);
  return block;
}

int64_t TransformerLayers(const std::vector<NamedParameter>& parameters) {
  int64_t last = -1;
  for (const NamedParameter& parameter : parameters) last = std::max(last, BlockOf(parameter.name));
  return last + 1;
}

int64_t TransformerDepth(const std::string& name, int64_t num_layers) {
  if (absl::StrContains(name, "heads")) return num_layers + 1;
  for (const char* input : {"patch_embed", "pos_embed", "cls_token"}) {
    if (absl::StrContains(name, input)) return 0;
  }
  const int64_t block = BlockOf(name);
  return block >= 0 ? block + 1 : num_layers;
}

bool TransformerRegularized(const std::string& name, const OptimizerOptions&) {
  return !IsBias(name) && !absl::StrContains(name, "norm");
}

int64_t ResNetLayers(const std::vector<NamedParameter>&) { return 4; }

int64_t ResNetDepth(const std::string& name, int64_t num_layers) {
  if (RE2::PartialMatch(name, R"(^trunk\.(_feature_blocks\.)?(conv1|bn1)\.)")) return 0;
  int64_t stage = 0;
  return RE2::PartialMatch(name, R"(\.layer([0-9]+)\.)", &stage) ? stage : num_layers + 1;
}

bool ResNetRegularized(const std::string& name, const OptimizerOptions& options) {
  if (IsBias(name)) return options.regularize_bias;
  return options.regularize_bn || !RE2::PartialMatch(name, R"(\.bn[0-9]*\.)");
}

class LayerDecayGrouper : public ParameterGrouper {
 public:
  LayerDecayGrouper(const Scheme& scheme, OptimizerOptions options) : scheme_(scheme), options_(std::move(options)) {}

  absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const override {
    const int64_t num_layers = scheme_.num_layers(parameters);
    const std::string schedule = options_.param_schedulers.weight_decay.is_map() ? "weight_decay" : "";
    return FormGroups(std::move(parameters), [&](const NamedParameter& parameter) {
      const int64_t depth = scheme_.depth(parameter.name, num_layers);
      ParameterGroup group = MakeGroup(absl::StrCat("layer", depth, "_"), scheme_.regularized(parameter.name, options_),
                                       options_.weight_decay, schedule);
      group.learning_rate_scale =
          std::pow(options_.layer_wise_lr_decay.decay, static_cast<double>(num_layers + 1 - depth));
      return group;
    });
  }

 private:
  const Scheme scheme_;
  const OptimizerOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeLayerDecayGrouperFromConfig(const ConfigNode& params,
                                                                                  const BuildContext& context) {
  const std::map<std::string, Scheme> schemes = {
      {"resnet", {&ResNetLayers, &ResNetDepth, &ResNetRegularized}},
      {"vision_transformer", {&TransformerLayers, &TransformerDepth, &TransformerRegularized}},
      {"vision_transformer_fsdp", {&TransformerLayers, &TransformerDepth, &TransformerRegularized}},
  };
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  const ConfigNode* trunk = context.config.FindPath("MODEL.TRUNK.NAME");
  const auto found = schemes.find(trunk == nullptr ? "" : trunk->text());
  if (found != schemes.end()) return std::make_unique<LayerDecayGrouper>(found->second, std::move(options));
  std::vector<std::string> names;
  for (const auto& entry : schemes) names.push_back(entry.first);
  return absl::InvalidArgumentError(
      absl::StrCat((trunk == nullptr ? params : *trunk).location().ToString(), ": config.MODEL.TRUNK.NAME is ",
                   trunk == nullptr ? "missing" : trunk->Describe(), ", expected one of ", absl::StrJoin(names, ", "),
                   " because param_group_constructor is lr_decay"));
}

}  // namespace ssl
