// SPDX-License-Identifier: Apache-2.0
//
// ssl_main --check_config: tells everything that is wrong with a configuration at once, without a run and without
// writing a file.
//
//   const ConfigReport report = CheckConfig(request, registries);
//   std::cout << FormatReport(report);
//   return ExitCodeOf(report);
//
// Wrong are unknown keys, values of a wrong type or out of range, names that nothing has, and settings that contradict
// each other. What VISSL has and this program lacks is no mistake: such a configuration is right, and incomplete here.
#ifndef SSL_TOOLS_CHECK_CONFIG_H_
#define SSL_TOOLS_CHECK_CONFIG_H_

#include <string>
#include <vector>

#include "ssl/config/compose.h"
#include "ssl/core/registries.h"

namespace ssl {

struct ConfigReport {
  std::vector<std::string> mistakes;            // "file:line: config.KEY is VALUE, expected ..."
  std::vector<std::string> missing_components;  // "file:line: trunk 'xcit' (config.MODEL.TRUNK.NAME)"
  std::vector<std::string> warnings;            // as Compose gives them
  // The files and the command line leave out what a run needs: a part to be put on top of others. Only the values that
  // are there are checked then.
  bool is_fragment = false;
  std::string fragment_reason;  // "no file sets ..."
};

// request: as for a run; strict_files does not matter. Once nothing else is wrong, everything up to the first step is
// built, which reads the data set's list of samples.
ConfigReport CheckConfig(const ComposeRequest& request, const Registries& registries);

// For a person; ends with a line that sums up.
std::string FormatReport(const ConfigReport& report);

// kExitFinished: it would run here; kExitConfiguration: mistakes; kExitIncomplete: none, but a fragment or incomplete.
int ExitCodeOf(const ConfigReport& report);

}  // namespace ssl

#endif  // SSL_TOOLS_CHECK_CONFIG_H_
