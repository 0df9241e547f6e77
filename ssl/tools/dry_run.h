// SPDX-License-Identifier: Apache-2.0
//
// ssl_main --dry_run: what a command would do and leave behind, without doing it.
#ifndef SSL_TOOLS_DRY_RUN_H_
#define SSL_TOOLS_DRY_RUN_H_

#include <ostream>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/tools/run_world.h"

namespace ssl {

// Prints the ranks of the run, then, of rank 0: builds the training of `root` (ResolveRoot, for the ranks of `world`)
// and prints where a start would go on, what the hooks of the whole run do and when (ssl/core/run_preview.h), then the
// engines and the files of the run directory. A start that would be refused is the error that it would end with. Opens,
// starts, connects, writes and trains nothing; what is wrong with data or model is an error as in a run. Hooks that
// never act are warned about in the log.
absl::Status DryRun(const ConfigNode& root, const RunWorld& world, const Registries& registries, std::ostream& out);

}  // namespace ssl

#endif  // SSL_TOOLS_DRY_RUN_H_
