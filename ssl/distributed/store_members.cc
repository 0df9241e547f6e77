// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/store_members.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "ssl/base/torch_guard.h"

namespace ssl {
namespace {

constexpr size_t kNamedRanks = 8;

}  // namespace

std::string MemberKey(int64_t rank) { return absl::StrCat("member/", rank); }

void Introduce(int64_t rank, int64_t size, c10d::Store& store) {
  store.set(MemberKey(rank), absl::StrCat(size, " ", ProcessIdentity::OfThisProcess().ToText()));
}

Introduction IntroductionOf(int64_t rank, c10d::Store& store) {
  Introduction introduction;
  introduction.name = absl::StrCat("rank ", rank);
  if (!store.check({MemberKey(rank)})) return introduction;
  const std::string text = store.get_to_str(MemberKey(rank));
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  introduction.process = ProcessIdentity::FromText(parts.second);
  absl::StrAppend(&introduction.name, " (", introduction.process.Name(), ")");
  if (!absl::SimpleAtoi(parts.first, &introduction.size)) introduction.size = 0;
  return introduction;
}

std::chrono::milliseconds StoreTimeout(absl::Duration duration) {
  return std::max(absl::ToChronoMilliseconds(duration), std::chrono::milliseconds(1));
}

bool AwaitKeys(const std::vector<std::string>& keys, absl::Time deadline, c10d::Store& store) {
  if (keys.empty()) return true;
  return GuardTorch("wait",
                    [&] {
                      store.wait(keys, StoreTimeout(deadline - absl::Now()));
                      return absl::OkStatus();
                    })
      .ok();
}

void AwaitListeners(RankKey said, RankKey heard, int64_t size, c10d::Store& store) {
  std::vector<std::string> keys;
  for (int64_t rank = 1; rank < size; ++rank) {
    if (store.check({said(rank)})) keys.push_back(heard(rank));
  }
  AwaitKeys(keys, absl::Now() + kFarewell, store);
}

std::string Enumerate(const std::vector<std::string>& names) {
  if (names.size() <= kNamedRanks) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kNamedRanks, ", "), " and ",
                      names.size() - kNamedRanks, " others");
}

}  // namespace ssl
