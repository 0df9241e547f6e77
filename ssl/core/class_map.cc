// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/class_map.h"

#include <ATen/ops/_unique.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/label_check.h"

namespace ssl {
namespace {

constexpr size_t kNamedClasses = 10;

// The first of them, and how many there are.
std::string Listed(const std::vector<std::string>& names) {
  const size_t count = std::min(names.size(), kNamedClasses);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + count, ", "), count < names.size() ? ", ..." : "",
                      " (", names.size(), ")");
}

std::string NumberOrName(int64_t number, const std::vector<std::string>& names) {
  return number >= 0 && number < static_cast<int64_t>(names.size()) ? names[number] : absl::StrCat(number);
}

std::vector<std::string> NamesOf(const std::vector<int64_t>& numbers, const SplitClasses& classes) {
  std::vector<std::string> names;
  for (const int64_t number : numbers) names.push_back(NumberOrName(number, classes.names));
  return names;
}

std::vector<int64_t> Distinct(const at::Tensor& labels) {
  const at::Tensor values = std::get<0>(at::_unique(labels.contiguous(), /*sorted=*/true));
  const int64_t* begin = values.const_data_ptr<int64_t>();
  return std::vector<int64_t>(begin, begin + values.numel());
}

// Where the images of a split come from.
std::string PlaceOf(const std::string& split, const ConfigNode& config) {
  const std::string key = absl::StrCat("DATA.", split, ".DATA_PATHS");
  const ConfigNode* paths = config.FindPath(key);
  const bool named = paths != nullptr && !paths->items().empty();
  return absl::StrCat("config.", key, named ? absl::StrCat(" [", paths->items().front().text(), "]") : "");
}

}  // namespace

absl::StatusOr<SplitClasses> ClassesOf(const std::string& split, const BatchSource& source, const ConfigNode& config) {
  SSL_RETURN_IF_ERROR(CheckHasLabels("this evaluation needs labels", split, source, config));
  SplitClasses classes{PlaceOf(split, config), source.ClassNames(), {}};
  absl::StatusOr<std::vector<int64_t>> numbers = source.Classes();
  if (numbers.ok()) classes.numbers = *std::move(numbers);
  // A source that cannot tell is found out by its labels.
  if (!numbers.ok() && !absl::IsUnimplemented(numbers.status())) return numbers.status();
  return classes;
}

absl::StatusOr<ClassMap> ClassMap::Create(const SplitClasses& train, const SplitClasses& test) {
  if (train.names.empty() != test.names.empty()) {
    const SplitClasses& named = train.names.empty() ? test : train;
    const SplitClasses& numbered = train.names.empty() ? train : test;
    return absl::InvalidArgumentError(
        absl::StrCat(numbered.place, " has classes that are numbers, but ", named.place,
                     " has classes with names: ", Listed(named.names),
                     "; nothing says which is which: give both the same kind of data source, or label files "
                     "(LABEL_SOURCES: [disk_filelist], LABEL_PATHS) with the same names or numbers"));
  }
  ClassMap map;
  map.train_ = train;
  map.test_ = test;
  if (!train.numbers.empty() && !test.numbers.empty()) {
    SSL_RETURN_IF_ERROR(map.CheckKnown(test.numbers, train.numbers));
  }
  return map;
}

std::string ClassMap::NameOf(int64_t test_class) const { return NumberOrName(test_class, test_.names); }

int64_t ClassMap::TrainClass(int64_t test_class) const {
  if (test_.names.empty()) return test_class;
  const auto found = std::find(train_.names.begin(), train_.names.end(), NameOf(test_class));
  return found == train_.names.end() ? -1 : found - train_.names.begin();
}

absl::Status ClassMap::CheckKnown(const std::vector<int64_t>& test_classes,
                                  const std::vector<int64_t>& train_classes) const {
  std::vector<std::string> unknown;
  for (const int64_t number : test_classes) {
    if (!std::binary_search(train_classes.begin(), train_classes.end(), TrainClass(number))) {
      unknown.push_back(NameOf(number));
    }
  }
  return unknown.empty() ? absl::OkStatus() : UnknownClasses(unknown, NamesOf(train_classes, train_));
}

absl::Status ClassMap::UnknownClasses(const std::vector<std::string>& unknown,
                                      const std::vector<std::string>& known) const {
  return absl::InvalidArgumentError(
      absl::StrCat(test_.place, " has classes without a sample in ", train_.place, ": ", Listed(unknown),
                   ", so that no answer could be right; classes there: ", Listed(known),
                   "; name the same classes in both, add samples of these classes to the training data, or leave "
                   "them out of the test data"));
}

absl::StatusOr<at::Tensor> ClassMap::Apply(const at::Tensor& labels, const at::Tensor& train_labels) const {
  SSL_RETURN_IF_ERROR(CheckKnown(Distinct(labels), Distinct(train_labels)));
  return Renumber(labels);
}

absl::StatusOr<at::Tensor> ClassMap::Renumber(const at::Tensor& labels) const {
  if (is_identity() || labels.numel() == 0) return labels;
  at::Tensor renumbered = labels.clone();
  for (const int64_t number : Distinct(labels)) {
    const int64_t in_training = number < 0 ? number : TrainClass(number);
    if (number >= 0 && in_training < 0) return UnknownClasses({NameOf(number)}, train_.names);
    renumbered.masked_fill_(labels.eq(number), in_training);
  }
  return renumbered;
}

}  // namespace ssl
