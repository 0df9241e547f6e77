// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/collators.h"

#include <functional>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/data/collators/cutmixup_collator.h"
#include "ssl/data/collators/multicrop_mixup_collator.h"
#include "ssl/data/collators/one_hot_collator.h"
#include "ssl/data/collators/view_collators.h"

namespace ssl {
namespace {

using Factory =
    std::function<absl::StatusOr<std::unique_ptr<const Collator>>(const ConfigNode& params, absl::string_view path)>;

std::map<std::string, Factory> Factories() {
  return {
      {"cutmixup_collator", MakeCutMixUpCollator},
      {"default_collate", MakeDefaultCollate},
      {"moco_collator", MakeMocoCollator},
      {"multicrop_collator", MakeMulticropCollator},
      {"multicrop_mixup_collator", MakeMulticropMixupCollator},
      {"patch_and_image_collator", MakePatchAndImageCollator},
      {"siamese_collator", MakeSiameseCollator},
      {"simclr_collator", MakeSimclrCollator},
      {"targets_one_hot_default_collator", MakeOneHotCollator},
  };
}

}  // namespace

std::vector<std::string> CollatorNames() {
  std::vector<std::string> names;
  for (const auto& entry : Factories()) names.push_back(entry.first);
  return names;
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeCollator(const std::string& name, const ConfigNode& params,
                                                             absl::string_view path) {
  const std::map<std::string, Factory> factories = Factories();
  const auto found = factories.find(name);
  if (found == factories.end()) {
    return absl::NotFoundError(absl::StrCat("no collate function is named '", name, "'",
                                            DidYouMean(name, CollatorNames()),
                                            "; known: ", absl::StrJoin(CollatorNames(), ", ")));
  }
  return found->second(params, path);
}

}  // namespace ssl
