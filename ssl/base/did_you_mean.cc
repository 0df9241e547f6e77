// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/did_you_mean.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ssl {
namespace {

// Optimal string alignment distance by rows: row i holds the distances between the first i
// letters of a and every prefix of b.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> two_back(b.size() + 1);
  std::vector<size_t> previous(b.size() + 1);
  std::vector<size_t> current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], two_back[j - 2] + 1);
    }
    std::swap(two_back, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// The shortest candidate that has the lower-case `wanted` as its whole first or, if there is none, last words: "swav"
// of "swav_loss". "" for none, and for words that are too short to mean one.
std::string WholeWords(const std::string& wanted, const std::vector<std::string>& candidates) {
  constexpr size_t kShortest = 4;
  std::string found;
  bool found_first = false;
  for (const std::string& candidate : candidates) {
    const std::string lower = absl::AsciiStrToLower(candidate);
    const bool is_first = absl::StartsWith(lower, wanted + "_");
    if (wanted.size() < kShortest || !(is_first || absl::EndsWith(lower, "_" + wanted))) continue;
    const bool is_better = is_first == found_first ? candidate.size() < found.size() : is_first;
    if (!found.empty() && !is_better) continue;
    found = candidate;
    found_first = is_first;
  }
  return found;
}

}  // namespace

std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates, size_t greatest_distance) {
  const std::string wanted = absl::AsciiStrToLower(name);
  size_t limit = std::min(greatest_distance, std::max<size_t>(2, wanted.size() / 3));
  // Replacing every letter makes any short name near any other.
  limit = std::min(limit, wanted.empty() ? 0 : wanted.size() - 1);
  std::string nearest;
  // A name that was cut off is nearer than one with other letters. Of equal ones the first stays.
  std::pair<bool, size_t> best = {true, limit + 1};
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), wanted.size());
    if (longer - std::min(candidate.size(), wanted.size()) > limit) continue;
    const std::string lower = absl::AsciiStrToLower(candidate);
    const size_t distance = EditDistance(wanted, lower);
    const std::pair<bool, size_t> found = {!absl::StartsWith(lower, wanted), distance};
    if (distance > limit || found >= best) continue;
    nearest = candidate;
    best = found;
  }
  const bool may_be_longer = nearest.empty() && greatest_distance == std::numeric_limits<size_t>::max();
  return may_be_longer ? WholeWords(wanted, candidates) : nearest;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

}  // namespace ssl
