// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/concat_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/sample.h"

namespace ssl {
namespace {

constexpr int64_t kLeastOfPart = 20;

}  // namespace

ConcatDataset::ConcatDataset(std::vector<std::unique_ptr<Dataset>> parts) : parts_(std::move(parts)), begins_{0} {
  for (const std::unique_ptr<Dataset>& part : parts_) begins_.push_back(begins_.back() + part->size());
  const bool all_do = std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->has_labels(); });
  label_conflict_ = FindLabelConflict();
  has_labels_ = all_do && label_conflict_.empty();
  NumberClasses();
  JoinCounts();
}

std::string ConcatDataset::FindLabelConflict() const {
  const Dataset* labelled = nullptr;
  const Dataset* other = nullptr;
  for (const std::unique_ptr<Dataset>& part : parts_) (part->has_labels() ? labelled : other) = part.get();
  if (labelled == nullptr) return "";
  if (other != nullptr) {
    return absl::StrCat(other->description(), " has none, ", labelled->description(),
                        " has some; LABEL_SOURCES and LABEL_PATHS, with an entry for each source, give labels");
  }
  const Dataset& first = *parts_.front();
  for (const std::unique_ptr<Dataset>& part : parts_) {
    const size_t columns = first.LabelRow(0).size();
    const size_t others = part->LabelRow(0).size();
    if (others != columns) {
      return absl::StrCat(part->description(), " has ", others, " labels in a row and ", first.description(), " has ",
                          columns, " (0: a class each)");
    }
    if (part->ClassNames().empty() != first.ClassNames().empty()) {
      const Dataset& named = first.ClassNames().empty() ? *part : first;
      const Dataset& numbered = first.ClassNames().empty() ? first : *part;
      return absl::StrCat("classes of ", named.description(), " have names and those of ", numbered.description(),
                          " are numbers, so that nothing says which of them are the same");
    }
  }
  return "";
}

void ConcatDataset::NumberClasses() {
  numbers_.resize(parts_.size());
  if (!has_labels_) return;
  for (const std::unique_ptr<Dataset>& part : parts_) {
    class_names_.insert(class_names_.end(), part->ClassNames().begin(), part->ClassNames().end());
  }
  std::sort(class_names_.begin(), class_names_.end());
  class_names_.erase(std::unique(class_names_.begin(), class_names_.end()), class_names_.end());
  for (size_t i = 0; i < parts_.size(); ++i) {
    for (const std::string& name : parts_[i]->ClassNames()) {
      numbers_[i].push_back(std::lower_bound(class_names_.begin(), class_names_.end(), name) - class_names_.begin());
    }
  }
}

void ConcatDataset::JoinCounts() {
  for (const std::unique_ptr<Dataset>& part : parts_) {
    BrokenImages* broken = CountOf(*part);
    if (broken_ == nullptr) {
      broken_ = broken;
    } else if (broken != nullptr) {
      broken->Join(broken_);
    }
  }
}

std::string ConcatDataset::description() const {
  return absl::StrJoin(parts_, " + ", [](std::string* out, const auto& part) { out->append(part->description()); });
}

std::pair<size_t, int64_t> ConcatDataset::Find(int64_t index) const {
  const auto end = std::upper_bound(begins_.begin(), begins_.end(), index);
  const size_t part = static_cast<size_t>(end - begins_.begin()) - 1;
  return {part, index - begins_[part]};
}

int64_t ConcatDataset::Renumbered(size_t part, int64_t label) const {
  const std::vector<int64_t>& numbers = numbers_[part];
  const bool named = label >= 0 && label < static_cast<int64_t>(numbers.size());
  return named ? numbers[label] : label;
}

absl::Status ConcatDataset::Get(int64_t index, Sample* sample) const {
  const auto [part, place] = Find(index);
  SSL_RETURN_IF_ERROR(parts_[part]->Get(place, sample));
  if (!has_labels_) {
    sample->SetLabel(-1);
  } else {
    sample->label = Renumbered(part, sample->label);
  }
  return absl::OkStatus();
}

void ConcatDataset::KeepInMemory(const DatasetCache& cache) {
  for (const std::unique_ptr<Dataset>& part : parts_) {
    const double share = static_cast<double>(part->size()) / static_cast<double>(size());
    part->KeepInMemory({cache.content, static_cast<int64_t>(share * static_cast<double>(cache.max_bytes))});
  }
}

void ConcatDataset::WillRead(int64_t samples) {
  const double share = static_cast<double>(samples) / static_cast<double>(size());
  if (broken_ != nullptr) broken_->WillRead(samples);
  for (const std::unique_ptr<Dataset>& part : parts_) {
    if (CountOf(*part) != nullptr) continue;
    part->WillRead(std::max<int64_t>(kLeastOfPart, std::llround(share * static_cast<double>(part->size()))));
  }
}

absl::StatusOr<bool> ConcatDataset::ReadEncoded(int64_t index, ByteBuffer* bytes) const {
  const auto [part, place] = Find(index);
  return parts_[part]->ReadEncoded(place, bytes);
}

int64_t ConcatDataset::Label(int64_t index) const {
  const auto [part, place] = Find(index);
  return has_labels_ ? Renumbered(part, parts_[part]->Label(place)) : -1;
}

absl::Span<const int64_t> ConcatDataset::LabelRow(int64_t index) const {
  const auto [part, place] = Find(index);
  return has_labels_ ? parts_[part]->LabelRow(place) : absl::Span<const int64_t>();
}

absl::Span<const int64_t> ConcatDataset::LabelList(int64_t index) const {
  const auto [part, place] = Find(index);
  return has_labels_ ? parts_[part]->LabelList(place) : absl::Span<const int64_t>();
}

std::vector<std::string> ConcatDataset::PassedOver() const {
  std::vector<std::string> all;
  for (const std::unique_ptr<Dataset>& part : parts_) {
    for (const std::string& what : part->PassedOver()) all.push_back(absl::StrCat(part->description(), ": ", what));
  }
  return all;
}

std::string ConcatDataset::ImagePath(int64_t index) const {
  const auto [part, place] = Find(index);
  return parts_[part]->ImagePath(place);
}

std::string ConcatDataset::SampleIdentity(int64_t index) const {
  const auto [part, place] = Find(index);
  return parts_[part]->SampleIdentity(place);
}

std::string ConcatDataset::SampleName(int64_t index) const {
  const auto [part, place] = Find(index);
  return parts_[part]->SampleName(place);
}

}  // namespace ssl
