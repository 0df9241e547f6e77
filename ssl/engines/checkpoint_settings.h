// SPDX-License-Identifier: Apache-2.0
//
// How the settings of an evaluation differ from those that its checkpoint was trained with. Weights that fit say
// nothing about it: a pooling layer, a stride or the normalisation of images has none.
#ifndef SSL_ENGINES_CHECKPOINT_SETTINGS_H_
#define SSL_ENGINES_CHECKPOINT_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

// The value of a setting that a checkpoint's config.json at `origin` has as `text` (NodeOfSaved).
absl::StatusOr<ConfigNode> ReadSavedSetting(absl::string_view text, absl::string_view origin);

// One sentence for each difference that changes figures, naming key and both values: of the trunk and the heads, of the
// conversions (Normalize, Grayscale) among the transforms, and a PARAMS_FILE that training did not begin with.
//   config: the evaluation's, complete (PlanEvaluation); json: the checkpoint's config.json, "" for one that has none,
//   about which nothing is known; origin: its path. DataLoss for a text that is none.
absl::StatusOr<std::vector<std::string>> ChangesSinceTraining(const ConfigNode& config, const OptionCatalog& catalog,
                                                              absl::string_view json, absl::string_view origin);

// InvalidArgument when the outputs of a network stand for other classes than `names`, those of config.DATA.<split>.
//   checkpoint: its step directory, "" for weights of another origin, about which nothing is known.
absl::Status CheckClassesOfCheckpoint(const std::string& checkpoint, const std::string& split,
                                      const std::vector<std::string>& names, FileSystem& file_system);

// OK when the newest intact checkpoint in `checkpoints`, a directory, records the same text under `key`, which says
// with which weights its training began, as `config` has there; InvalidArgument with both. What else is wrong with the
// checkpoints is not looked at. Rank 0.
absl::Status CheckInitialWeights(const ConfigNode& config, const OptionCatalog& catalog, const std::string& key,
                                 const std::string& checkpoints, FileSystem& file_system, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_ENGINES_CHECKPOINT_SETTINGS_H_
