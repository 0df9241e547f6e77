// SPDX-License-Identifier: Apache-2.0
//
// What a run will do, told before it does anything: which hook acts at which time of the first and the last epoch, what
// never happens, and which files stay. From what hooks say of themselves (Hook::Plan).
#ifndef SSL_CORE_RUN_PREVIEW_H_
#define SSL_CORE_RUN_PREVIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/core/hook.h"
#include "ssl/core/phases_builder.h"

namespace ssl {

// PlannedAction::file of what saves the run. Of these, and of no other files, the newest are kept.
inline constexpr char kCheckpointFile[] = "checkpoints/step_<iteration>";
// How that of what names a checkpoint ends (checkpoint_names.h).
inline constexpr char kCheckpointNameSuffix[] = ".step";

struct RunPreview {
  std::string text;                   // a table for people, in lines
  std::vector<std::string> warnings;  // what a hook is set up for and never does, one sentence each
};

// hooks: in the order in which they run. keep_last: of the checkpoints that have no name; 0 for all. Pure, thread-safe.
RunPreview PreviewRun(const std::vector<const Hook*>& hooks, const std::vector<Phase>& phases,
                      int64_t updates_per_epoch, int64_t keep_last);

}  // namespace ssl

#endif  // SSL_CORE_RUN_PREVIEW_H_
