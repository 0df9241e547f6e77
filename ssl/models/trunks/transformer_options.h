// SPDX-License-Identifier: Apache-2.0
//
// What the sections of transformers have in common.
#ifndef SSL_MODELS_TRUNKS_TRANSFORMER_OPTIONS_H_
#define SSL_MODELS_TRUNKS_TRANSFORMER_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

inline constexpr char kDropoutDoc[] = "Dropout of embeddings and of what linear layers give.";
inline constexpr char kAttentionDropoutDoc[] = "Dropout of attention weights.";
inline constexpr char kScaleDoc[] = "Factor of queries times keys; False: 1 / sqrt(HIDDEN_DIM / NUM_HEADS).";
inline constexpr char kRecomputedDoc[] =
    "Backward runs each block again, as with MODEL.ACTIVATION_CHECKPOINTING and a split for each.";
inline constexpr double kMostDropPath = 0.99;  // something has to be left

// QK_SCALE: 0 for False, None and 0, which leave the usual factor; else the factor. InvalidArgument names `path`, the
// value and its file:line.
absl::StatusOr<double> ReadScale(const ConfigNode& node, absl::string_view path);

// Where MODEL.TRUNK.NAME is `trunk`, or that with "_fsdp", and one of `keys` of MODEL.TRUNK.<section> is true, turns
// MODEL.ACTIVATION_CHECKPOINTING on, with a part for each block, unless it is on already. config: the tree under
// "config".
absl::Status RecomputeBlocksIfSet(absl::string_view trunk, absl::string_view section,
                                  const std::vector<std::string>& keys, ConfigNode* config);

// Where MODEL.TRUNK.NAME is `trunk`, as above: logs a warning when crops of DATA.TRAIN.TRANSFORMS are no multiple of
// PATCH_SIZE, and when an IMAGE_SIZE that somebody has set is not the size of the largest crop.
void WarnOfCropSizes(absl::string_view trunk, absl::string_view section, const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_TRANSFORMER_OPTIONS_H_
