// SPDX-License-Identifier: Apache-2.0
//
// How a hook or a metric sink enters the registries: one call in its own file says what it is named, what it does, and
// which options struct it reads (ssl/core/component.h). All else follows from that struct: the keys and their help, the
// defaults, whether a configuration turns it on, and its parameters in an entry of the list `hooks`.
//
//   absl::Status RegisterEmaHook(Registries* registries) {
//     return RegisterHook(registries, {"ema", "moving averages of the model"}, &MakeEma);
//   }
#ifndef SSL_HOOKS_REGISTER_COMPONENT_H_
#define SSL_HOOKS_REGISTER_COMPONENT_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/config/reader.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"

namespace ssl {

// The section() of a hook that has no keys of its own place: its keys are the kwargs of an entry of this list.
inline constexpr absl::string_view kHookList = "hooks";

// All keys of a component, its own and those that it shares, as one struct: its parameters. Refers to `options`.
class ComponentParameters : public Options {
 public:
  explicit ComponentParameters(ComponentOptions* options) : options_(options) {}
  void VisitFields(FieldVisitor& visitor) override;

 private:
  ComponentOptions* options_;
};

// Makes a component of its options; params: the map that they were read from, for places in messages.
template <class Interface, class ItsOptions>
using MakeComponent = absl::StatusOr<std::unique_ptr<Interface>> (*)(const ItsOptions& options,
                                                                     const ConfigNode& params,
                                                                     const BuildContext& context);

namespace register_component_internal {

// Enters `component` and, unless they stand in the list of hooks, its keys.
absl::Status Add(Component component, std::map<std::string, Component>* components, OptionCatalog* catalog);

template <class Interface, class ItsOptions>
absl::Status Register(Component component, MakeComponent<Interface, ItsOptions> make, Registry<Interface>* registry,
                      std::map<std::string, Component>* components, OptionCatalog* catalog) {
  const std::string name = component.name;
  SSL_RETURN_IF_ERROR(
      registry->Register(name,
                         [name, make](const ConfigNode& params,
                                      const BuildContext& context) -> absl::StatusOr<std::unique_ptr<Interface>> {
                           ItsOptions options;
                           ComponentParameters parameters(&options);
                           SSL_RETURN_IF_ERROR(ReadOptions(params, name, UnknownKeys::kError, &parameters));
                           return make(options, params, context);
                         }));
  component.make_options = [] { return std::make_unique<ItsOptions>(); };
  return Add(std::move(component), components, catalog);
}

}  // namespace register_component_internal

// AlreadyExists when the name is taken, or a key is declared by another struct.
template <class ItsOptions>
absl::Status RegisterHook(Registries* registries, Component component, MakeComponent<Hook, ItsOptions> make) {
  return register_component_internal::Register<Hook, ItsOptions>(std::move(component), make, &registries->hooks,
                                                                 &registries->hook_components, &registries->options);
}

template <class ItsOptions>
absl::Status RegisterSink(Registries* registries, Component component, MakeComponent<MetricSink, ItsOptions> make) {
  return register_component_internal::Register<MetricSink, ItsOptions>(
      std::move(component), make, &registries->metric_sinks, &registries->sink_components, &registries->options);
}

// The names of the keys that `options` visits, without those inside its sections.
std::vector<std::string> KeysOf(Options& options);

// What stands in `config`, the tree under "config", for the keys of a component, its own and those that it shares,
// nested ones too: its parameters where no entry of the list of hooks sets them. Keys that others declare in the same
// maps (VISSL's that nobody reads) stay behind. Values are not checked.
ConfigNode ParametersIn(const ConfigNode& config, ComponentOptions* options);

// A path inside the run directory; FailedPrecondition, which `what` begins ("hook 'profiler'"), when the run keeps no
// files.
absl::StatusOr<std::string> PathInRun(const BuildContext& context, absl::string_view what, absl::string_view file);
// The same for a metric sink.
absl::StatusOr<std::string> PathOfSink(const BuildContext& context, absl::string_view sink, absl::string_view file);

// "config.HOOKS.EVAL.KNN", or the key alone when context.key_paths does not know it. "A.B" is key B of the section A.
std::string PathOfKey(absl::string_view key, const BuildContext& context);

// "file:line: config.HOOKS.EVAL.KNN" for a key of `params`, "file:line: config.hooks.0.kwargs.KNN" when an entry of the
// list has set it, or would have to. The place of a default is that of `params`.
std::string PlaceOf(const ConfigNode& params, absl::string_view key, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_HOOKS_REGISTER_COMPONENT_H_
