// SPDX-License-Identifier: Apache-2.0
//
// United Perception's blocks `trainer` and `saver`, as far as they say how long a run is, and when it tests and saves:
//
//   config:
//     trainer: {max_epoch: 19, test_freq: 19, save_freq: 1, save_cur_start: 15, save_cur_freq: 2}
//     saver: {auto_resume: True}
//
// They become the run's own keys before anything is built: the resolved configuration has those, and the blocks no
// more. A log line says of each what it came to. Where theirs mean something else (docs/checkpoints.md):
//
// - max_iter, a length in iterations, is refused;
// - save_latest_freq counts iterations in `trainer` and epochs in `saver`, as there;
// - save_cur_start and save_cur_freq, which that program documents and does not have, are the rolling checkpoint;
// - what has no effect there (save_freq beside only_save_latest, save_latest_freq without it) has none, with a warning,
//   nor have save_dir and results_dir;
// - optimizer, lr_scheduler, pretrain_model and resume_model are refused: other keys say here what they do.
#ifndef SSL_HOOKS_FOREIGN_RUN_BLOCKS_H_
#define SSL_HOOKS_FOREIGN_RUN_BLOCKS_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

// Declares the keys of both blocks.
absl::Status AddForeignRunBlocks(Registries* registries);

// InvalidArgument, all problems at once and in the user's names, for values that are wrong, and for one that
// contradicts a key of ours that somebody has set. config: the tree under "config".
absl::Status ResolveForeignRunBlocks(const Registries& registries, ConfigNode* config);

}  // namespace ssl

#endif  // SSL_HOOKS_FOREIGN_RUN_BLOCKS_H_
