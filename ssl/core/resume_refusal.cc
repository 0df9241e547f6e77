// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/resume_refusal.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

// A list of transforms is longer than a line; what differs in it is what matters.
constexpr size_t kMaxQuoted = 160;
constexpr size_t kContext = 40;

size_t FirstDifference(const std::string& value, const std::string& other) {
  const size_t most = std::min(value.size(), other.size());
  return std::mismatch(value.begin(), value.begin() + most, other.begin()).first - value.begin();
}

std::string Lines(const std::vector<const SettingDifference*>& differences) {
  return absl::StrJoin(differences, "", [](std::string* out, const SettingDifference* difference) {
    absl::StrAppend(out, "\n  ", difference->ToString());
  });
}

// "config.KEY=VALUE" of the checkpoint, as a user types it.
void AppendSaved(std::string* out, const SettingDifference* difference) {
  std::string value = difference->saved.size() <= kContext ? absl::StrCat("=", difference->saved) : "";
  if (difference->saved == kNotSet) value = ", which was not set";
  absl::StrAppend(out,
                  difference->counted.empty() ? absl::StrCat("config.", difference->key, value) : difference->counted);
}

}  // namespace

std::string QuotedDifference(const std::string& value, const std::string& other) {
  if (value.size() <= kMaxQuoted) return value;
  const size_t differs = FirstDifference(value, other);
  const size_t begin = differs > kContext ? differs - kContext : 0;
  const bool cut = begin + kMaxQuoted < value.size();
  return absl::StrCat(begin > 0 ? "..." : "", value.substr(begin, kMaxQuoted), cut ? "..." : "");
}

std::string SettingDifference::ToString() const {
  const std::string where = location.empty() ? "" : absl::StrCat(" (", location, ")");
  if (!told.empty()) return absl::StrCat(key, ": ", told, where);
  return absl::StrCat(key, ": ", QuotedDifference(saved, now), " in the checkpoint, ", QuotedDifference(now, saved),
                      " now", where, hint);
}

absl::Status ResumeRefusal::ToStatus() const {
  if (others.empty() && obstacles.empty()) return absl::OkStatus();
  const std::string step = ParentDirectory(origin);
  const std::string found =
      absl::StrCat(origin, ": the run was started with other settings than it would go on with:", Lines(others));
  if (tests_only) {
    return absl::InvalidArgumentError(
        absl::StrCat(found, "\na test of its weights is a run of its own: choose a new config.CHECKPOINT.DIR, with ",
                     "config.MODEL.WEIGHTS_INIT.PARAMS_FILE=", step));
  }
  std::vector<std::string> keys = allowed;
  for (const SettingDifference* other : others) {
    const bool hinders = std::count(to_put_back.begin(), to_put_back.end(), other) > 0;
    if (!hinders) keys.push_back(other->key);
  }
  const std::string allow = absl::StrCat("config.CHECKPOINT.ALLOW_CHANGES=[", absl::StrJoin(keys, ","), "]");
  if (obstacles.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(found,
                     "\nput them back, choose another config.CHECKPOINT.DIR, start anew with "
                     "config.CHECKPOINT.OVERWRITE_EXISTING=True config.CHECKPOINT.AUTO_RESUME=False, or accept the "
                     "change with ",
                     allow));
  }
  std::vector<std::string> ways = remedies;
  if (!to_put_back.empty()) ways.push_back(absl::StrCat("put back ", absl::StrJoin(to_put_back, ", ", AppendSaved)));
  const bool has_more = others.size() > to_put_back.size() && keys.size() > allowed.size();
  const std::string lines = Lines(others) + Lines(accepted);
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": ", absl::StrJoin(obstacles, "; "), lines.empty() ? "" : ":", lines,
                   "\nconfig.CHECKPOINT.ALLOW_CHANGES cannot accept this; ", absl::StrJoin(ways, " and "),
                   has_more ? absl::StrCat(" (and put back the rest, or accept it with ", allow, ")") : "",
                   ", or start a new run with these weights: another config.CHECKPOINT.DIR and "
                   "config.MODEL.WEIGHTS_INIT.PARAMS_FILE=",
                   step));
}

}  // namespace ssl
