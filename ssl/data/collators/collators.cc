// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/collators.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/config/fields.h"
#include "ssl/data/collators/cutmixup_collator.h"
#include "ssl/data/collators/multicrop_mixup_collator.h"
#include "ssl/data/collators/one_hot_collator.h"
#include "ssl/data/collators/view_collators.h"

namespace ssl {
namespace {

struct CollatorEntry {
  const char* name;
  absl::StatusOr<std::unique_ptr<const Collator>> (*make)(const ConfigNode& params, absl::string_view path);
  std::unique_ptr<Options> (*make_options)();  // null: it has no parameters
  const char* summary;
};

// Sorted by name.
constexpr CollatorEntry kCollators[] = {
    {"cutmixup_collator", &MakeCutMixUpCollator, &MakeCutMixUpCollatorOptions,
     "Any views, each mixed with that of the sample at its place from the end of the batch, by mixup ([arXiv "
     "1710.09412](https://arxiv.org/abs/1710.09412)) or CutMix ([arXiv "
     "1905.04899](https://arxiv.org/abs/1905.04899)); an even number of samples. Targets: of one view soft labels, of "
     "several none."},
    {"default_collate", &MakeDefaultCollate, nullptr, "One view. Targets: the labels."},
    {"moco_collator", &MakeMocoCollator, nullptr,
     "Two views of one size, the query's and the key's (MoCo, [arXiv 1911.05722](https://arxiv.org/abs/1911.05722)). "
     "Targets: the labels."},
    {"multicrop_collator", &MakeMulticropCollator, &MakeMulticropCollatorOptions,
     "Any views, as they are. Targets: the labels."},
    {"multicrop_mixup_collator", &MakeMulticropMixupCollator, nullptr,
     "Any views. Samples 2i and 2i + 1 become row i, the mean of both by a weight of the batch from Beta(0.2, 0.2); an "
     "even number of samples. Targets: the labels of samples 2i."},
    {"patch_and_image_collator", &MakePatchAndImageCollator, nullptr,
     "An image, the input `images`, and two or more patches of one size, the input `patches`, in one tensor, sample by "
     "sample (PIRL, [arXiv 1912.01991](https://arxiv.org/abs/1912.01991)). Targets: the labels."},
    {"siamese_collator", &MakeSiameseCollator, nullptr,
     "Two or more views of one size, in one tensor, sample by sample. Targets: the labels."},
    {"simclr_collator", &MakeSimclrCollator, nullptr,
     "Two or more views of one size (SimCLR, [arXiv 2002.05709](https://arxiv.org/abs/2002.05709)). Targets: the "
     "labels."},
    {"targets_one_hot_default_collator", &MakeOneHotCollator, &MakeOneHotCollatorOptions,
     "One view. Targets: a row for each sample, 1, 0 and -1 (unknown) for each class."},
};

}  // namespace

std::vector<std::string> CollatorNames() {
  std::vector<std::string> names;
  for (const CollatorEntry& entry : kCollators) names.push_back(entry.name);
  return names;
}

std::vector<NamedEntry> DescribeCollators() {
  std::vector<NamedEntry> entries;
  for (const CollatorEntry& entry : kCollators) {
    entries.push_back({entry.name, entry.summary, entry.make_options == nullptr ? nullptr : entry.make_options()});
  }
  return entries;
}

absl::StatusOr<std::unique_ptr<const Collator>> MakeCollator(const std::string& name, const ConfigNode& params,
                                                             absl::string_view path) {
  const auto* found = std::find_if(std::begin(kCollators), std::end(kCollators),
                                   [&name](const auto& entry) { return entry.name == name; });
  if (found == std::end(kCollators)) {
    return absl::NotFoundError(absl::StrCat("no collate function is named '", name, "'",
                                            DidYouMean(name, CollatorNames()),
                                            "; known: ", absl::StrJoin(CollatorNames(), ", ")));
  }
  return found->make(params, path);
}

}  // namespace ssl
