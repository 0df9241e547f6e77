// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/num_crops.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/transform.h"

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

constexpr int64_t kMostViews = 1 << 16;  // more than any loss compares

// Sets `count` to the last value that says how many views a transform makes of one; null without any. Returns 0 where
// a transform neither says it nor keeps them as they are.
absl::StatusOr<int64_t> Views(const ConfigNode& transforms, absl::FunctionRef<bool(const ConfigNode&)> keeps,
                              const ConfigNode** count) {
  *count = nullptr;
  int64_t views = 1;
  for (const ConfigNode& transform : transforms.items()) {
    const ConfigNode* const number =
        transform.Find(transform.Find("num_times") != nullptr ? "num_times" : "total_num_crops");
    if (number == nullptr && !keeps(transform)) return 0;
    if (number == nullptr) continue;
    *count = number;
    SSL_ASSIGN_OR_RETURN(const int64_t made, number->AsInt());
    if (made < 1 || made > kMostViews) return 0;  // the transform refuses it
    views = std::min(views * made, kMostViews);
  }
  return views;
}

// Whether it treats each view by itself, or applies transforms that do. What a host registers may make as many as it
// likes.
bool KeepsViews(const ConfigNode& transform, const BuildContext& context) {
  const ConfigNode* const name = transform.Find("name");
  const bool applies_others = transform.Find("indices") != nullptr || transform.Find("transforms") != nullptr;
  if (name == nullptr || applies_others) return name != nullptr;
  const auto made = context.registries.transforms.Make(name->text(), transform, context);
  return made.ok() && (*made)->as_view_transform() != nullptr;
}

}  // namespace

absl::StatusOr<int64_t> CountViews(const ConfigNode& config) {
  const ConfigNode* transforms = config.FindPath("DATA.TRAIN.TRANSFORMS");
  const ConfigNode* count = nullptr;
  if (transforms == nullptr || transforms->items().empty()) return 0;
  const auto keeps = [](const ConfigNode& transform) {
    const ConfigNode* const name = transform.Find("name");
    return name == nullptr || !absl::StrContains(name->text(), "Patches");
  };
  return Views(*transforms, keeps, &count);
}

absl::Status CheckViews(const BuildContext& context, absl::string_view loss, int64_t expected) {
  const ConfigNode* transforms = context.config.FindPath("DATA.TRAIN.TRANSFORMS");
  if (transforms == nullptr || transforms->items().empty()) return absl::OkStatus();
  const ConfigNode* count = nullptr;
  const auto keeps = [&context](const ConfigNode& transform) { return KeepsViews(transform, context); };
  SSL_ASSIGN_OR_RETURN(const int64_t views, Views(*transforms, keeps, &count));
  if (views == 0 || views == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      (count == nullptr ? *transforms : *count).location().ToString(), ": config.DATA.TRAIN.TRANSFORMS make ", views,
      views == 1 ? " view" : " views", " of an image, ", loss, " (config.LOSS.name) compares ", expected,
      "; expected ImgReplicatePil with num_times, or ImgPilToMultiCrop with total_num_crops, of ", expected));
}

}  // namespace ssl
