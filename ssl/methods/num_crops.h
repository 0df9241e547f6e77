// SPDX-License-Identifier: Apache-2.0
//
// The number of crops that a multi-crop loss sees follows from the transforms (VISSL's inference).
#ifndef SSL_METHODS_NUM_CROPS_H_
#define SSL_METHODS_NUM_CROPS_H_

#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config". Sets LOSS.<loss>.num_crops to the last total_num_crops of DATA.TRAIN.TRANSFORMS, and
// leaves it alone where there is none.
void TakeNumCrops(ConfigNode* config, absl::string_view loss);

}  // namespace ssl

#endif  // SSL_METHODS_NUM_CROPS_H_
