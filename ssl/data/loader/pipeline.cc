// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/pipeline.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/data/get_image.h"
#include "ssl/data/transforms/view_planner.h"

namespace ssl {
namespace {

// How many samples are tried in place of a broken one; after these comes a grey image.
constexpr int64_t kMostTried = 16;

// What a sample is beside its image.
struct Identity {
  explicit Identity(const Sample& sample)
      : index(sample.index), label(sample.label), label_row(sample.label_row), label_list(sample.label_list) {}

  void GiveTo(Sample* sample) const {
    sample->index = index;
    sample->label = label;
    sample->label_row = label_row;
    sample->label_list = label_list;
  }

  int64_t index;
  int64_t label;
  absl::Span<const int64_t> label_row;
  absl::Span<const int64_t> label_list;
};

// 0 ... count - 1.
std::vector<int64_t> ClassesBelow(int64_t count) {
  std::vector<int64_t> classes(count);
  std::iota(classes.begin(), classes.end(), 0);
  return classes;
}

}  // namespace

Pipeline::Pipeline(std::unique_ptr<Dataset> dataset, std::vector<std::unique_ptr<Transform>> transforms,
                   LabelType label_type, uint64_t seed)
    : dataset_(std::move(dataset)), transforms_(std::move(transforms)), label_type_(label_type), seed_(seed) {
  while (first_reader_ < transforms_.size() && transforms_[first_reader_]->CopiesOf(copies_) > 0) {
    copies_ = transforms_[first_reader_++]->CopiesOf(copies_);
  }
  for (const std::unique_ptr<Transform>& transform : transforms_) {
    if (transform->num_label_classes() > 0) made_classes_ = transform->num_label_classes();
  }
}

absl::StatusOr<std::vector<int64_t>> Pipeline::Classes() const {
  if (made_classes_ > 0) return ClassesBelow(made_classes_);
  if (label_type_ == LabelType::kZero) return ClassesBelow(1);
  if (label_type_ == LabelType::kSampleIndex) return ClassesBelow(dataset_->size());
  bool told = false;
  std::set<int64_t> classes;
  for (int64_t index = 0; index < dataset_->size(); ++index) {
    const int64_t label = dataset_->Label(index);
    if (label >= 0) classes.insert(label);
    const absl::Span<const int64_t> row = dataset_->LabelRow(index);
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i] == 1) classes.insert(static_cast<int64_t>(i));
    }
    const absl::Span<const int64_t> list = dataset_->LabelList(index);
    classes.insert(list.begin(), list.end());
    told = told || label >= 0 || !row.empty() || !list.empty();
  }
  if (told) return std::vector<int64_t>(classes.begin(), classes.end());
  return absl::UnimplementedError(
      absl::StrCat(dataset_->description(), " tells no classes without reading its images"));
}

bool Pipeline::tables_say_all() const {
  return std::none_of(transforms_.begin(), transforms_.end(), [](const std::unique_ptr<Transform>& transform) {
    return transform->float_rule() == FloatRule::kByChance;
  });
}

std::vector<std::string> Pipeline::ClassNames() const {
  if (GivesLabels()) return {};
  const absl::Span<const std::string> names = dataset_->ClassNames();
  return std::vector<std::string>(names.begin(), names.end());
}

std::string Pipeline::SampleIdentity(int64_t index) const {
  std::string identity = dataset_->SampleIdentity(index);
  if (GivesLabels()) return identity;
  const char* separator = identity.empty() ? "" : ", ";
  const absl::Span<const int64_t> row = dataset_->LabelRow(index);
  const absl::Span<const int64_t> list = dataset_->LabelList(index);
  const int64_t label = dataset_->Label(index);
  if (!row.empty()) {
    absl::StrAppend(&identity, separator, "labels ", absl::StrJoin(row, " "));
  } else if (!list.empty()) {
    absl::StrAppend(&identity, separator, "classes ", absl::StrJoin(list, " "));
  } else if (label >= 0) {
    absl::StrAppend(&identity, separator, "class ", label);
  }
  return identity;
}

NeededPixels Pipeline::Needs(const TransformContext& first, int height, int width) const {
  if (first_reader_ == transforms_.size()) return WholeImage(height, width);
  return transforms_[first_reader_]->Needs(first, copies_, height, width);
}

absl::Status Pipeline::Load(const TransformContext& first, int64_t index, Sample* sample) const {
  const auto needs = [&](int height, int width) { return Needs(first, height, width); };
  const NeededRegion needed(needs);
  sample->needed = &needed;
  sample->file_buffer.Allocate(0);  // whether it is used, its size tells
  const absl::Status read = GetImage(*dataset_, index, sample);
  sample->needed = nullptr;
  return read;
}

absl::Status Pipeline::LoadOrReplace(const TransformContext& first, int64_t index, Sample* sample) const {
  SSL_RETURN_IF_ERROR(Load(first, index, sample));
  if (sample->fault == ReadFault::kNone || replacement_ == Replacement::kNone) return absl::OkStatus();
  const ReadFault fault = sample->fault;
  const Identity own(*sample);
  const int64_t size = dataset_->size();
  const int64_t others = std::min(kMostTried, size - 1);
  for (int64_t i = 1; i <= others && sample->fault != ReadFault::kNone; ++i) {
    SSL_RETURN_IF_ERROR(Load(first, (index + i) % size, sample));
  }
  sample->fault = fault;
  if (replacement_ == Replacement::kImage) own.GiveTo(sample);
  return absl::OkStatus();
}

absl::Status Pipeline::ReadImage(int64_t epoch, int64_t index, PipelineScratch* scratch) const {
  if (scratch->use.is_over()) *scratch = PipelineScratch();
  Sample* sample = &scratch->sample;
  // Another sample in place of a broken one goes through the transforms under the broken one's number.
  const TransformContext first{seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index), first_reader_,
                               scratch->transform};
  SSL_RETURN_IF_ERROR(LoadOrReplace(first, index, sample));
  scratch->use.Add(sample->view(0).image.size_bytes() + static_cast<int64_t>(sample->file_buffer.size()));

  if (label_type_ != LabelType::kStandard) {
    sample->SetLabel(label_type_ == LabelType::kSampleIndex ? sample->index : 0);
  }
  return absl::OkStatus();
}

absl::Status Pipeline::OfTransform(const absl::Status& status, int64_t index, size_t i) const {
  return Annotate(status, absl::StrCat("sample ", index, " of ", dataset_->description(), ": transform ", i, ", '",
                                       transforms_[i]->name(), "'"));
}

absl::Status Pipeline::Read(int64_t epoch, int64_t index, PipelineScratch* scratch) const {
  SSL_RETURN_IF_ERROR(ReadImage(epoch, index, scratch));
  for (size_t i = 0; i < transforms_.size(); ++i) {
    const TransformContext context{seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index), i,
                                   scratch->transform};
    const absl::Status status = transforms_[i]->Apply(context, &scratch->sample);
    if (!status.ok()) return OfTransform(status, index, i);
  }
  return absl::OkStatus();
}

absl::Status Pipeline::Plan(int64_t epoch, int64_t index, PipelineScratch* scratch) const {
  SSL_RETURN_IF_ERROR(ReadImage(epoch, index, scratch));
  scratch->plans.assign(1, ViewPlan());
  for (size_t i = 0; i < transforms_.size(); ++i) {
    const TransformContext context{seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index), i,
                                   scratch->transform};
    const absl::Status status =
        PlannerOf(*transforms_[i])->Plan(context, scratch->sample.view(0).image, &scratch->plans);
    if (!status.ok()) return OfTransform(status, index, i);
  }
  return CheckCropped(scratch->plans);
}

size_t Pipeline::first_without_plan() const {
  const auto has_none = [](const std::unique_ptr<Transform>& transform) { return PlannerOf(*transform) == nullptr; };
  return std::find_if(transforms_.begin(), transforms_.end(), has_none) - transforms_.begin();
}

absl::Status Pipeline::CheckPlans(PipelineScratch* scratch) const {
  const size_t without = first_without_plan();
  if (without < transforms_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("transform ", without, ", '", transforms_[without]->name(), "', is not done on a device"));
  }
  SSL_RETURN_IF_ERROR(Plan(/*epoch=*/0, /*index=*/0, scratch));
  std::vector<int> most_steps(scratch->plans.size());
  for (const std::unique_ptr<Transform>& transform : transforms_) PlannerOf(*transform)->CountSteps(&most_steps);
  for (size_t v = 0; v < most_steps.size(); ++v) {
    if (most_steps[v] <= ViewPlan::kMostSteps) continue;
    return absl::InvalidArgumentError(absl::StrCat("view ", v, " may take ", most_steps[v],
                                                   " steps after its crop, expected at most ", ViewPlan::kMostSteps,
                                                   " where a device makes it"));
  }
  return absl::OkStatus();
}

}  // namespace ssl
