// SPDX-License-Identifier: Apache-2.0
//
// ShuffleImgPatches (VISSL; Jigsaw, https://arxiv.org/abs/1603.09246): orders the views by one of the permutations in
// perm_file, a .npy array [permutations, views] of numbers from 0 or from 1, and makes its row the label: view k
// becomes what view permutation[k] was.
#ifndef SSL_DATA_TRANSFORMS_SHUFFLE_IMG_PATCHES_H_
#define SSL_DATA_TRANSFORMS_SHUFFLE_IMG_PATCHES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

class ShuffleImgPatches : public Transform {
 public:
  // permutations: not empty, of 0 ... n - 1 each.
  explicit ShuffleImgPatches(std::vector<std::vector<int>> permutations) : permutations_(std::move(permutations)) {}

  absl::string_view name() const override { return "ShuffleImgPatches"; }
  int64_t num_label_classes() const override { return static_cast<int64_t>(permutations_.size()); }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;

 private:
  std::vector<std::vector<int>> permutations_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeShuffleImgPatches(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeShuffleImgPatchesOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_SHUFFLE_IMG_PATCHES_H_
