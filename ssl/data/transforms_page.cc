// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms_page.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/config/help.h"
#include "ssl/config/markdown.h"
#include "ssl/data/collators/collators.h"
#include "ssl/data/data_options.h"
#include "ssl/data/samplers/sampler_keys.h"
#include "ssl/data/transforms/register_transforms.h"

namespace ssl {
namespace {

constexpr char kHeader[] = R"(# Transforms, collators and samplers

Made by `./bazelw run //ssl/tools:print_transforms_page > docs/transforms.md`; do not edit. How to write one, and what departs from VISSL:
[transforms](../ssl/data/transforms/README.md), [collators](../ssl/data/collators/README.md), [samplers](../ssl/data/samplers/README.md).

A [sampler](#samplers) says which images a rank visits, [transforms](#transforms) make views of each, and a [collator](#collators) makes a batch of them.
A default of `null` stands for nothing given: what the meaning says, or a parameter that has to be there.

## Transforms
Entries of `DATA.TRAIN.TRANSFORMS` and `DATA.TEST.TRANSFORMS`, carried out in their order. `engine_name=preview` shows what they make of images.

```yaml
TRANSFORMS:
  - {name: ImgPilToMultiCrop, total_num_crops: 6, num_crops: [2, 4], size_crops: [224, 96], crop_scales: [[0.14, 1], [0.05, 0.14]]}
  - {name: RandomHorizontalFlip, p: 0.5}
  - {name: ImgPilGaussianBlur, p: 0.5, indices: [0, 1]}
  - {name: ToTensor}
  - {name: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
```

- Names and parameters are those of VISSL and torchvision. A parameter that a transform does not have is an error with its place and the nearest name.
- A transform that treats views one by one takes `indices` as well: only these views, counted from 0.
- What equals Pillow is compared with images that Pillow 13 made, in tests beside the code, and holds with `DECODE: exact`, the default. Images are 8-bit until they are
  written into a batch, as Pillow's are; what stands behind ToTensor or one like it works on floats.
- Random numbers have the distributions of VISSL and torchvision and are not theirs number by number: they follow from the seed, the epoch, the image, the view and the place in
  the list, so that neither threads nor a stop change them.
)";

constexpr char kCollatorHeader[] = R"(
## Collators
`DATA.TRAIN.COLLATE_FUNCTION` names one, by VISSL's names, and `COLLATE_FUNCTION_PARAMS` has its parameters. What the transforms make of an image has to be what
it wants; another number of views is refused before the first batch. `INPUT_KEY_NAMES` chooses among its inputs, `data` where nothing else is said.
)";

constexpr char kSamplerHeader[] = R"(
## Samplers
Samplers have no names, as in VISSL: keys of `DATA.TRAIN` choose one. Where none does, every epoch shuffles the whole data set and shares it out among the ranks, as
PyTorch's `DistributedSampler` does. Test phases visit all samples in the data's own order.
)";

// Whether `key` belongs to a sampler.
bool IsOfSampler(absl::string_view key) {
  std::vector<std::string> own = SamplerKeys();
  own.push_back("MINI_EPOCH_GROUPS");  // chooses none by itself
  return std::any_of(own.begin(), own.end(), [key](const std::string& sampler) {
    return key == sampler || absl::StartsWith(key, absl::StrCat(sampler, "."));
  });
}

std::vector<HelpRow> SamplerRows() {
  DataSplitOptions split;
  std::vector<HelpRow> rows;
  for (HelpRow& row : HelpRows("", split)) {
    if (IsOfSampler(row.key)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string TransformsPage() {
  std::string page = kHeader;
  for (const NamedEntry& transform : DescribeTransforms()) page += MarkdownSection(transform);
  page += kCollatorHeader;
  for (const NamedEntry& collator : DescribeCollators()) page += MarkdownSection(collator);
  return absl::StrCat(page, kSamplerHeader, MarkdownTable("key", SamplerRows()));
}

}  // namespace ssl
