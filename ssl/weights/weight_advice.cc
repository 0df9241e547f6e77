// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weight_advice.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

constexpr absl::string_view kTrunk = "trunk.";
constexpr size_t kExamples = 5;

// Length of the ending that two names share, from a dot or the beginning on.
size_t SharedEnding(absl::string_view a, absl::string_view b) {
  size_t shared = 0;
  const size_t limit = std::min(a.size(), b.size());
  while (shared < limit && a[a.size() - 1 - shared] == b[b.size() - 1 - shared]) ++shared;
  return shared;
}

const std::string& Nearest(absl::string_view name, const std::vector<std::string>& candidates) {
  return *std::max_element(candidates.begin(), candidates.end(), [name](const std::string& a, const std::string& b) {
    return SharedEnding(name, a) < SharedEnding(name, b);
  });
}

// How many names of the file are a trunk's behind each prefix that ends with a dot.
std::map<std::string, int64_t> CountPrefixes(const std::vector<std::string>& file_names,
                                             const std::vector<std::string>& model_names) {
  std::set<absl::string_view> trunk;
  for (const std::string& name : model_names) {
    if (absl::StartsWith(name, kTrunk)) trunk.insert(absl::StripPrefix(name, kTrunk));
  }
  std::map<std::string, int64_t> counts;
  for (const std::string& name : file_names) {
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (trunk.count(absl::string_view(name).substr(dot + 1)) > 0) ++counts[name.substr(0, dot + 1)];
    }
  }
  return counts;
}

}  // namespace

std::string AdviseOnNames(const std::vector<std::string>& file_names, const std::vector<std::string>& model_names) {
  std::string advice;
  const std::map<std::string, int64_t> counts = CountPrefixes(file_names, model_names);
  const auto best =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best != counts.end() && best->second > 1) {
    absl::StrAppend(&advice, "REMOVE_PREFIX: '", best->first, "' (with an empty APPEND_PREFIX) would name ",
                    best->second, " of them; ");
  }
  std::vector<std::string> examples;
  for (size_t i = 0; i < std::min(file_names.size(), kExamples) && !model_names.empty(); ++i) {
    examples.push_back(absl::StrCat("'", file_names[i], "' (nearest: '", Nearest(file_names[i], model_names), "')"));
  }
  return absl::StrCat(advice, "the file has ", file_names.size(), " tensors: ", absl::StrJoin(examples, ", "),
                      file_names.size() > kExamples ? ", ..." : "");
}

}  // namespace ssl
