// SPDX-License-Identifier: Apache-2.0
//
// Names to factories. A registry is a value: no global, no order of initialisation, two runs in one process may
// differ. Registration is an explicit call, because a static registrar in an archive is silently dropped.
#ifndef SSL_CORE_REGISTRY_H_
#define SSL_CORE_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/config/node.h"

namespace ssl {

struct BuildContext;

// Factory arguments: the component's own parameters (a map node; its key-value pairs are the component's options),
// and what it may use of the run.
template <class Interface>
class Registry {
 public:
  using Factory =
      std::function<absl::StatusOr<std::unique_ptr<Interface>>(const ConfigNode& params, const BuildContext& context)>;

  // kind: what the messages call an entry, such as "transform".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  // AlreadyExists when `name` is taken.
  absl::Status Register(std::string name, Factory factory) {
    const bool inserted = factories_.emplace(name, std::move(factory)).second;
    if (!inserted) return absl::AlreadyExistsError(absl::StrCat(kind_, " '", name, "' is registered twice"));
    return absl::OkStatus();
  }

  // NotFound, with the nearest name and the list of names, when `name` is not registered.
  // `location` (file:line) opens that message.
  absl::StatusOr<std::unique_ptr<Interface>> Make(absl::string_view name, const ConfigNode& params,
                                                  const BuildContext& context) const {
    const auto found = factories_.find(std::string(name));
    if (found == factories_.end()) {
      return absl::NotFoundError(absl::StrCat(params.location().ToString(), ": no ", kind_, " is named '", name, "'",
                                              DidYouMean(name, Names()), "; known: ", absl::StrJoin(Names(), ", ")));
    }
    return found->second(params, context);
  }

  bool Has(absl::string_view name) const { return factories_.count(std::string(name)) > 0; }

  // Sorted.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : factories_) names.push_back(entry.first);
    return names;
  }

  const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
  std::map<std::string, Factory> factories_;
};

}  // namespace ssl

#endif  // SSL_CORE_REGISTRY_H_
