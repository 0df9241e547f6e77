// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/default_grouper.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/optim/optimizer_options.h"

namespace ssl {
namespace {

// "trunk.bn1" of "trunk.bn1.weight".
std::string LayerOf(const std::string& name) { return name.substr(0, name.find_last_of('.')); }

bool IsBias(const NamedParameter& parameter) {
  return parameter.name == "bias" || absl::EndsWith(parameter.name, ".bias");
}

class DefaultGrouper : public ParameterGrouper {
 public:
  explicit DefaultGrouper(const DefaultGrouperOptions& options) : options_(options) {}

  absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const override {
    std::set<std::string> norm_layers;
    for (const NamedParameter& parameter : parameters) {
      if (parameter.is_norm) norm_layers.insert(LayerOf(parameter.name));
    }
    std::vector<ParameterGroup> groups(2);
    groups[0].name = "regularized";
    groups[0].weight_decay = options_.weight_decay;
    groups[1].name = "unregularized";
    for (NamedParameter& parameter : parameters) {
      if (!parameter.value.requires_grad()) continue;
      const bool in_norm = norm_layers.count(LayerOf(parameter.name)) > 0;
      ParameterGroup& group = groups[Regularized(parameter, in_norm) ? 0 : 1];
      group.names.push_back(std::move(parameter.name));
      group.parameters.push_back(std::move(parameter.value));
    }
    groups.erase(std::remove_if(groups.begin(), groups.end(),
                                [](const ParameterGroup& group) { return group.parameters.empty(); }),
                 groups.end());
    return groups;
  }

 private:
  bool Regularized(const NamedParameter& parameter, bool in_norm) const {
    if (options_.single_group) return true;
    if (in_norm && !options_.regularize_bn) return false;
    if (IsBias(parameter) && !options_.regularize_bias) return false;
    return std::none_of(options_.non_regularized_parameters.begin(), options_.non_regularized_parameters.end(),
                        [&](const std::string& part) { return absl::StrContains(parameter.name, part); });
  }

  const DefaultGrouperOptions options_;
};

}  // namespace

std::unique_ptr<ParameterGrouper> MakeDefaultGrouper(const DefaultGrouperOptions& options) {
  return std::make_unique<DefaultGrouper>(options);
}

absl::StatusOr<std::unique_ptr<ParameterGrouper>> MakeDefaultGrouperFromConfig(const ConfigNode& params,
                                                                               const BuildContext& context) {
  OptimizerOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, "config.OPTIMIZER", UnknownKeys::kIgnore, &options));
  SSL_RETURN_IF_ERROR(CheckSupported(params, options));
  DefaultGrouperOptions grouper;
  grouper.weight_decay = options.weight_decay;
  grouper.regularize_bn = options.regularize_bn;
  grouper.regularize_bias = options.regularize_bias;
  grouper.non_regularized_parameters = options.non_regularized_parameters;
  grouper.single_group = options.construct_single_param_group_only;
  return MakeDefaultGrouper(grouper);
}

}  // namespace ssl
