// SPDX-License-Identifier: Apache-2.0
//
// targets_one_hot_default_collator (VISSL): one view, and targets [B, num_classes] of 1, 0 and -1 for unknown, as
// losses and meters of several labels want them. A row of labels (label_table.h) is that already, and must have
// num_classes columns; of a sample with a single class the others are unknown, as VISSL has it for classes that are
// neither among the positive nor the negative ones.
#ifndef SSL_DATA_COLLATORS_ONE_HOT_COLLATOR_H_
#define SSL_DATA_COLLATORS_ONE_HOT_COLLATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/data/collator.h"

namespace ssl {

// params: num_classes, which must be given.
absl::StatusOr<std::unique_ptr<const Collator>> MakeOneHotCollator(const ConfigNode& params, absl::string_view path);
std::unique_ptr<Options> MakeOneHotCollatorOptions();

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_ONE_HOT_COLLATOR_H_
