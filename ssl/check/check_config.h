// SPDX-License-Identifier: Apache-2.0
//
// Tells everything that is wrong with a configuration at once, without a run and without writing a file: what
// ssl_main --check_config prints, for any program.
//
//   ComposeRequest request = MakeRunRequest(registries);
//   request.tokens = {"config=pretrain/swav/swav_8node_resnet"};
//   request.search_dirs = {"."};
//   const ConfigReport report = CheckConfig(request, registries);
//   if (VerdictOf(report) != ConfigVerdict::kRuns) std::cerr << FormatReport(report);
//
// Wrong are unknown keys, values of a wrong type or out of range, names that nothing has, settings that contradict
// each other, and what only building the parts of a run can tell. What VISSL has and this program lacks is no mistake:
// such a configuration is right, and incomplete here. Data that a run would find damaged before it begins are no
// mistake either. Thread-safe.
#ifndef SSL_CHECK_CHECK_CONFIG_H_
#define SSL_CHECK_CHECK_CONFIG_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/config/compose.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

struct ConfigReport {
  std::vector<std::string> mistakes;            // "file:line: config.KEY is VALUE, expected ..."
  std::vector<std::string> missing_components;  // "file:line: trunk 'xcit' (config.MODEL.TRUNK.NAME)"
  std::string missing_device;                   // "file:line: config.MACHINE.DEVICE is gpu: ..."; "" when it is here
  std::string missing_nodes;                    // "file:line: config.DISTRIBUTED.RUN_ID is auto: ..."; "" for none
  std::vector<std::string> damaged_data;        // "sample 0 of photos: ...": what a start would end with
  std::vector<std::string> warnings;            // as Compose gives them
  std::vector<std::string> tokens_for_here;     // FindTokensForHere, where a program has asked for them
  // The files and the command line leave out what a run needs: a part to be put on top of others. Only the values that
  // are there are checked then.
  bool is_fragment = false;
  std::string fragment_reason;  // "no file sets ..."
  // What a run would have under "config", of a configuration that is no fragment: resolved, a default in the place of
  // each value that is wrong.
  ConfigNode config = ConfigNode::Map();
};

enum class ConfigVerdict {
  kRuns,  // it would run here
  kMistakes,
  kDamagedData,  // no mistake
  kIncomplete,   // no mistake, but a fragment, or in need of what this program lacks
};

// A request for what a run reads: the options of `registries` and VISSL's root keys with their defaults. Tokens and
// search directories are the caller's to add.
ComposeRequest MakeRunRequest(const Registries& registries);

// Puts the ranks that a start would have into NUM_NODES and NUM_PROC_PER_NODE of the composed tree, {engine_name,
// config}, whose values have the right types; InvalidArgument says why there would be no start, Unimplemented why there
// would be one elsewhere.
using WorldPlacement = std::function<absl::Status(ConfigNode* root)>;

// request: as for a run; all unknown keys are listed. A wrong value counts as its default from then on, and a mistyped
// name as the nearest one, so that one mistake hides no other: the parts of the run are built all the same, which reads
// the data set's list of samples; the session, up to its first step, when all parts can be. What is found at a
// place (file:line) where something was found before, or about the same key, follows from that and is left out.
// place_world: where a flag or the environment may say what the ranks are; null: DISTRIBUTED says it. The run is built
// as rank 0 of them, connected to nobody.
ConfigReport CheckConfig(const ComposeRequest& request, const Registries& registries,
                         const WorldPlacement& place_world = nullptr);

// Tokens that, behind those of the request, make a configuration run here that CheckConfig has found to lack nothing
// but what another machine has: the device, the other nodes, the data. Empty for any other, and where no tokens do.
// Logs what a check logs.
std::vector<std::string> FindTokensForHere(const ComposeRequest& request, const Registries& registries,
                                           const WorldPlacement& place_world, const ConfigReport& report);

ConfigVerdict VerdictOf(const ConfigReport& report);

// Whether it would run on a machine that differs from this one in having the device.
bool LacksDeviceAlone(const ConfigReport& report);

// For a person; ends with a line that sums up.
std::string FormatReport(const ConfigReport& report);

}  // namespace ssl

#endif  // SSL_CHECK_CHECK_CONFIG_H_
