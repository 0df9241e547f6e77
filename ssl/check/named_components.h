// SPDX-License-Identifier: Apache-2.0
//
// Every component that a configuration names: the trunk, heads within heads, parts of a composite schedule, transforms
// within transforms, and so on. Stateless; safe from any thread.
#ifndef SSL_CHECK_NAMED_COMPONENTS_H_
#define SSL_CHECK_NAMED_COMPONENTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

struct NamedComponent {
  std::string kind;  // as Registry::kind() has it: "trunk", "head"; also "label source", "augly transform"
  std::string name;
  std::string path;  // of the name: "config.MODEL.TRUNK.NAME"
  SourceLocation location;
};

// root: the composed tree {engine_name, config}. In the order of the tree's sections; what is no name (a list where a
// text should stand) is left out, because whoever reads the key reports it.
std::vector<NamedComponent> NamedComponents(const ConfigNode& root);

// What engine_name names: one engine, or a list.
std::vector<std::string> EngineNames(const ConfigNode& root);

// A line for an engine_name that names none; "" for any other.
std::string MissingEngine(const ConfigNode& root);

// Whether the train engine is among them.
bool Trains(const ConfigNode& root);

// Whether that one or the estimate of its time is: the settings are those of a training that is meant to begin.
bool MeansToTrain(const ConfigNode& root);

// The registered names of a kind of component; empty for a kind that no registry has.
std::vector<std::string> RegisteredNames(absl::string_view kind, const Registries& registries);

// A line for a name that neither this program nor VISSL has, with the nearest right one and all known ones; "" for
// a name of either.
std::string WrongName(const NamedComponent& component, const Registries& registries);

}  // namespace ssl

#endif  // SSL_CHECK_NAMED_COMPONENTS_H_
