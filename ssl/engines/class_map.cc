// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/class_map.h"

#include <ATen/ops/_unique.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/status_macros.h"

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

}  // namespace

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
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(test_.place, " has classes without a sample in ", train_.place, ": ", Listed(unknown),
                   ", so that no answer could be right; classes there: ", Listed(NamesOf(train_classes, train_)),
                   "; name the same classes in both, add samples of these classes to the training data, or leave "
                   "them out of the test data"));
}

absl::StatusOr<at::Tensor> ClassMap::Apply(const at::Tensor& labels, const at::Tensor& train_labels) const {
  const std::vector<int64_t> numbers = Distinct(labels);
  SSL_RETURN_IF_ERROR(CheckKnown(numbers, Distinct(train_labels)));
  if (test_.names.empty()) return labels;
  at::Tensor table = at::full({numbers.back() + 1}, -1, labels.options());
  for (const int64_t number : numbers) table[number].fill_(TrainClass(number));
  return table.index_select(0, labels);
}

}  // namespace ssl
