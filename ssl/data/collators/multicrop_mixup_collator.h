// SPDX-License-Identifier: Apache-2.0
//
// multicrop_mixup_collator (VISSL): samples 2i and 2i + 1 of a batch become its row i, every view the weighted mean of
// theirs, with one weight for all rows and views of a batch, which is drawn from Beta(0.2, 0.2). Index and label are
// those of sample 2i. B samples, an even number, make B / 2 rows. No parameters.
#ifndef SSL_DATA_COLLATORS_MULTICROP_MIXUP_COLLATOR_H_
#define SSL_DATA_COLLATORS_MULTICROP_MIXUP_COLLATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/data/collator.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<const Collator>> MakeMulticropMixupCollator(const ConfigNode& params,
                                                                           absl::string_view path);

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_MULTICROP_MIXUP_COLLATOR_H_
