// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/pipeline.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_util.h"

namespace ssl {

Pipeline::Pipeline(std::unique_ptr<Dataset> dataset, std::vector<std::unique_ptr<Transform>> transforms,
                   LabelType label_type, uint64_t seed)
    : dataset_(std::move(dataset)), transforms_(std::move(transforms)), label_type_(label_type), seed_(seed) {}

absl::Status Pipeline::Read(int64_t epoch, int64_t index, PipelineScratch* scratch) const {
  Sample* sample = &scratch->sample;
  sample->ResetViews(1);
  sample->index = index;
  sample->label = -1;
  const absl::Status read = dataset_->Get(index, sample);
  if (!read.ok()) return Annotate(read, absl::StrCat("sample ", index, " of ", dataset_->description()));

  if (label_type_ == LabelType::kSampleIndex) sample->label = index;
  if (label_type_ == LabelType::kZero) sample->label = 0;

  for (size_t i = 0; i < transforms_.size(); ++i) {
    const TransformContext context{seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index), i,
                                   scratch->transform};
    const absl::Status status = transforms_[i]->Apply(context, sample);
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("sample ", index, " of ", dataset_->description(), ": transform ", i, ", '",
                                           transforms_[i]->name(), "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace ssl
