// SPDX-License-Identifier: Apache-2.0
//
// cutmixup_collator (VISSL): every view of a sample is mixed with that of the sample at its place from the end of the
// batch (cutmix.h). A batch must have an even number of samples. Views are mixed apart, as in VISSL.
//
// Batches of one view have soft labels: float [B, num_classes], the smoothed classes of both samples by their shares.
// Batches of several views, which methods without labels read, have no targets: each view has shares of its own.
#ifndef SSL_DATA_COLLATORS_CUTMIXUP_COLLATOR_H_
#define SSL_DATA_COLLATORS_CUTMIXUP_COLLATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/data/collator.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<const Collator>> MakeCutMixUpCollator(const ConfigNode& params, absl::string_view path);
std::unique_ptr<Options> MakeCutMixUpCollatorOptions();

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_CUTMIXUP_COLLATOR_H_
