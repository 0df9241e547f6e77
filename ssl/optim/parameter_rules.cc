// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/parameter_rules.h"

#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

// "trunk.bn1" of "trunk.bn1.weight".
std::string LayerOf(const std::string& name) { return name.substr(0, name.find_last_of('.')); }

}  // namespace

std::vector<ParameterGroup> FormGroups(std::vector<NamedParameter> parameters, const GroupRule& rule) {
  std::vector<ParameterGroup> groups;
  std::map<std::string, size_t> positions;
  for (NamedParameter& parameter : parameters) {
    if (!parameter.value.requires_grad()) continue;
    ParameterGroup settings = rule(parameter);
    const size_t position = positions.emplace(settings.name, groups.size()).first->second;
    if (position == groups.size()) groups.push_back(std::move(settings));
    groups[position].names.push_back(std::move(parameter.name));
    groups[position].parameters.push_back(std::move(parameter.value));
  }
  return groups;
}

LayerKinds::LayerKinds(const std::vector<NamedParameter>& parameters) {
  for (const NamedParameter& parameter : parameters) {
    if (parameter.is_norm) norm_layers_.insert(LayerOf(parameter.name));
  }
}

bool LayerKinds::Regularized(const std::string& name, const RegularizedLayers& layers) const {
  if (IsBias(name) && !layers.bias) return false;
  return layers.norm || norm_layers_.count(LayerOf(name)) == 0;
}

bool IsBias(const std::string& name) { return name == "bias" || absl::EndsWith(name, ".bias"); }

ParameterGroup MakeGroup(const std::string& prefix, bool regularized, double weight_decay,
                         const std::string& schedule) {
  ParameterGroup group;
  group.name = absl::StrCat(prefix, regularized ? "regularized" : "unregularized");
  if (!regularized) return group;
  group.weight_decay = weight_decay;
  group.weight_decay_schedule = schedule;
  return group;
}

}  // namespace ssl
