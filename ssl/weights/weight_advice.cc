// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weight_advice.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ssl {
namespace {

constexpr absl::string_view kTrunk = "trunk.";
constexpr size_t kExamples = 5;
// Parts of the names of encoders that are a moving average of another one: MoCo's, BYOL's, DINO's, of many trainers.
constexpr std::array<absl::string_view, 8> kAverages = {"k",       "key", "momentum", "target",
                                                        "teacher", "ema", "average",  "avg"};

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
  const std::set<std::string> own(model_names.begin(), model_names.end());
  std::map<std::string, int64_t> counts;
  for (const std::string& name : file_names) {
    if (own.count(name) > 0) continue;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (trunk.count(absl::string_view(name).substr(dot + 1)) > 0) ++counts[name.substr(0, dot + 1)];
    }
  }
  return counts;
}

bool IsAverage(absl::string_view prefix) {
  const std::vector<absl::string_view> parts = absl::StrSplit(prefix, absl::ByAnyChar("._"));
  return std::any_of(parts.begin(), parts.end(),
                     [](absl::string_view part) { return std::count(kAverages.begin(), kAverages.end(), part) > 0; });
}

// The prefixes that fit about as well as the best, those of encoders that were trained before their averages.
std::vector<std::string> BestPrefixes(const std::map<std::string, int64_t>& counts) {
  int64_t best = 2;  // one name alone may be chance
  for (const auto& [prefix, count] : counts) best = std::max(best, count);
  std::vector<std::string> prefixes;
  for (const auto& [prefix, count] : counts) {
    if (2 * count >= best && count > 1) prefixes.push_back(prefix);
  }
  std::stable_partition(prefixes.begin(), prefixes.end(), [](const std::string& name) { return !IsAverage(name); });
  return prefixes;
}

std::string AdviceOnPrefix(const std::map<std::string, int64_t>& counts) {
  const std::vector<std::string> prefixes = BestPrefixes(counts);
  std::vector<std::string> named;
  for (const std::string& prefix : prefixes) {
    named.push_back(
        absl::StrCat("'", prefix, "' (with an empty APPEND_PREFIX) would name ", counts.at(prefix), " of them"));
  }
  if (named.empty()) return "";
  std::string advice = absl::StrCat("REMOVE_PREFIX: ", absl::StrJoin(named, ", or "), "; ");
  if (IsAverage(prefixes.back()) && !IsAverage(prefixes.front())) {
    absl::StrAppend(&advice, "by its name '", prefixes.back(),
                    "' is a moving average (key, momentum, target, teacher) ", "of '", prefixes.front(),
                    "', which was trained: usual is the trained one, with DINO the teacher; ");
  }
  return advice;
}

}  // namespace

std::string AdviseOnNames(const std::vector<std::string>& file_names, const std::vector<std::string>& model_names) {
  const std::string advice = AdviceOnPrefix(CountPrefixes(file_names, model_names));
  std::vector<std::string> examples;
  for (size_t i = 0; i < std::min(file_names.size(), kExamples) && !model_names.empty(); ++i) {
    examples.push_back(absl::StrCat("'", file_names[i], "' (nearest: '", Nearest(file_names[i], model_names), "')"));
  }
  return absl::StrCat(advice, "the file has ", file_names.size(), " tensors: ", absl::StrJoin(examples, ", "),
                      file_names.size() > kExamples ? ", ..." : "");
}

}  // namespace ssl
