// SPDX-License-Identifier: Apache-2.0
//
// Settings that somebody has written and that nothing of a training reads. Stateless; safe from any thread.
#ifndef SSL_CHECK_SETTINGS_WITHOUT_EFFECT_H_
#define SSL_CHECK_SETTINGS_WITHOUT_EFFECT_H_

#include <string>
#include <vector>

#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

// "file:line: config.KEY is VALUE, which has no effect: config.OTHER is ..." for each value other than its default that
// stands in a file or on the command line, and belongs to
// - the section of a loss or a meter that is not chosen,
// - a hook or a metric sink whose own keys do not turn it on (ssl/core/component.h),
// - an optimizer or a schedule that is not chosen: the documentation of such a key begins with the names that read it,
//   "adam, adamw: ...",
// - a section whose switch is off, or whose trunk is not chosen.
// What stands in one file with a switch that is off is left out.
// What an engine of the command reads whatever is chosen counts.
// root: {engine_name, config} as composed, with all defaults, before it is resolved; values have the right types.
std::vector<std::string> SettingsWithoutEffect(const ConfigNode& root, const Registries& registries);

}  // namespace ssl

#endif  // SSL_CHECK_SETTINGS_WITHOUT_EFFECT_H_
