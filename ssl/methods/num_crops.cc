// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/num_crops.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {

void TakeNumCrops(ConfigNode* config, absl::string_view loss) {
  const ConfigNode* transforms = config->FindPath("DATA.TRAIN.TRANSFORMS");
  if (transforms == nullptr) return;
  ConfigNode num_crops;
  for (const ConfigNode& transform : transforms->items()) {
    if (const ConfigNode* total = transform.Find("total_num_crops")) num_crops = *total;
  }
  if (!num_crops.is_null()) config->SetPath(absl::StrCat("LOSS.", loss, ".num_crops"), std::move(num_crops));
}

namespace {

// Sets `count` to the value that says how many views a transform makes; null for one view.
absl::StatusOr<int64_t> Views(const ConfigNode& transforms, const ConfigNode** count) {
  *count = nullptr;
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* name = transform.Find("name");
    if (name != nullptr && absl::StrContains(name->text(), "Patches")) return 0;
    for (const char* key : {"num_times", "total_num_crops"}) {
      if (transform.Find(key) != nullptr) *count = transform.Find(key);
    }
  }
  return *count == nullptr ? absl::StatusOr<int64_t>(1) : (*count)->AsInt();
}

}  // namespace

absl::StatusOr<int64_t> CountViews(const ConfigNode& config) {
  const ConfigNode* transforms = config.FindPath("DATA.TRAIN.TRANSFORMS");
  const ConfigNode* count = nullptr;
  if (transforms == nullptr || transforms->items().empty()) return 0;
  return Views(*transforms, &count);
}

absl::Status CheckViews(const ConfigNode& config, absl::string_view loss, int64_t expected) {
  const ConfigNode* transforms = config.FindPath("DATA.TRAIN.TRANSFORMS");
  if (transforms == nullptr || transforms->items().empty()) return absl::OkStatus();
  const ConfigNode* count = nullptr;
  SSL_ASSIGN_OR_RETURN(const int64_t views, Views(*transforms, &count));
  if (views == 0 || views == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      (count == nullptr ? *transforms : *count).location().ToString(), ": config.DATA.TRAIN.TRANSFORMS make ", views,
      views == 1 ? " view" : " views", " of an image, ", loss, " (config.LOSS.name) compares ", expected,
      "; expected ImgReplicatePil with num_times, or ImgPilToMultiCrop with total_num_crops, of ", expected));
}

}  // namespace ssl
