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
#include "ssl/core/registries.h"

namespace ssl {

// config: the tree under "config". Sets LOSS.<loss>.num_crops to the last total_num_crops of DATA.TRAIN.TRANSFORMS, and
// leaves it alone where there is none.
void TakeNumCrops(ConfigNode* config, absl::string_view loss);

// Views of an image that DATA.TRAIN.TRANSFORMS say they make: the product of the copies and crops; 1 without any. 0: a
// host's own source makes them, or transforms into patches, which do not say how many.
absl::StatusOr<int64_t> CountViews(const ConfigNode& config);

// InvalidArgument at the transforms when they make another number of views than `loss` compares. OK where one of them
// neither says how many it makes nor treats each view by itself, as a host's own may.
absl::Status CheckViews(const BuildContext& context, absl::string_view loss, int64_t expected);

}  // namespace ssl

#endif  // SSL_METHODS_NUM_CROPS_H_
