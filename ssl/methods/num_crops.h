// SPDX-License-Identifier: Apache-2.0
//
// The number of crops that a multi-crop loss sees follows from the transforms (VISSL's inference).
#ifndef SSL_METHODS_NUM_CROPS_H_
#define SSL_METHODS_NUM_CROPS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config". Sets LOSS.<loss>.num_crops to the last total_num_crops of DATA.TRAIN.TRANSFORMS, and
// leaves it alone where there is none.
void TakeNumCrops(ConfigNode* config, absl::string_view loss);

// Views of an image that DATA.TRAIN.TRANSFORMS say they make: the copies, or the crops, of the last transform that
// makes any; 1 without one. 0: a host's own source makes them, or transforms that do not say how many.
absl::StatusOr<int64_t> CountViews(const ConfigNode& config);

// InvalidArgument at the transforms when they make another number of views than `loss` compares.
absl::Status CheckViews(const ConfigNode& config, absl::string_view loss, int64_t expected);

}  // namespace ssl

#endif  // SSL_METHODS_NUM_CROPS_H_
