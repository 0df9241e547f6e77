// SPDX-License-Identifier: Apache-2.0
//
// The collators of VISSL that keep views as they are. A batch has one target for each sample, whatever the collator,
// and one tensor [B, C, H, W] for each view, but for the views that siamese_collator and patch_and_image_collator join:
// as in VISSL, all views of sample 0 come first, which is what the head siamese_concat_view puts side by side. VISSL's
// simclr_collator and multicrop_collator repeat the targets for each view, and simclr_collator makes one tensor [V * B,
// ...] with all samples of view 0 first; models here join views of one size in that very order, so that the network
// sees the same numbers.
#ifndef SSL_DATA_COLLATORS_VIEW_COLLATORS_H_
#define SSL_DATA_COLLATORS_VIEW_COLLATORS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/data/collator.h"

namespace ssl {

// One view. No parameters.
absl::StatusOr<std::unique_ptr<const Collator>> MakeDefaultCollate(const ConfigNode& params, absl::string_view path);
// Two views of one size: the query's, then the key's. No parameters.
absl::StatusOr<std::unique_ptr<const Collator>> MakeMocoCollator(const ConfigNode& params, absl::string_view path);
// Any views. create_multidimensional_tensor, as VISSL has it, must be False.
absl::StatusOr<std::unique_ptr<const Collator>> MakeMulticropCollator(const ConfigNode& params, absl::string_view path);
// An image, and two or more patches of one size, as ImgPilToPatchesAndImage makes them: the inputs "images" [B, ...]
// and "patches" [B * patches, ...]. No parameters.
absl::StatusOr<std::unique_ptr<const Collator>> MakePatchAndImageCollator(const ConfigNode& params,
                                                                          absl::string_view path);
// Two or more views of one size: the towers of a sample, joined [B * towers, ...]. No parameters.
absl::StatusOr<std::unique_ptr<const Collator>> MakeSiameseCollator(const ConfigNode& params, absl::string_view path);
// Two or more views of one size. No parameters.
absl::StatusOr<std::unique_ptr<const Collator>> MakeSimclrCollator(const ConfigNode& params, absl::string_view path);
std::unique_ptr<Options> MakeMulticropCollatorOptions();

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_VIEW_COLLATORS_H_
