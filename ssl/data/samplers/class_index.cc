// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/samplers/class_index.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ssl {

absl::StatusOr<ClassIndex> MakeClassIndex(const Dataset& dataset) {
  std::map<int64_t, std::vector<int64_t>> samples;
  for (int64_t index = 0; index < dataset.size(); ++index) {
    const int64_t label = dataset.Label(index);
    if (label < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("sample ", index, " of ", dataset.description(), " has no class, expected one for each sample"));
    }
    samples[label].push_back(index);
  }
  ClassIndex classes;
  for (auto& [label, indices] : samples) classes.push_back(std::move(indices));
  return classes;
}

}  // namespace ssl
