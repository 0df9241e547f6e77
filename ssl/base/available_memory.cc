// SPDX-License-Identifier: Apache-2.0
#include "ssl/base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace ssl {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

std::string Contents(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

int64_t NumberOr(absl::string_view text, int64_t other) {
  int64_t number = 0;
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &number) ? number : other;
}

// The number behind `name` at the beginning of a line; -1: there is none.
int64_t NumberBehind(absl::string_view name, absl::string_view text) {
  int64_t number = -1;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() >= 2 && words[0] == name) number = NumberOr(words[1], -1);
  }
  return number;
}

}  // namespace

int64_t ParseAvailableMemory(absl::string_view meminfo, absl::string_view group_max, absl::string_view group_current,
                             absl::string_view group_stat) {
  constexpr int64_t kBytesPerKilobyte = 1024;
  const int64_t kilobytes = NumberBehind("MemAvailable:", meminfo);
  const int64_t available = kilobytes >= 0 ? kilobytes * kBytesPerKilobyte : kUnlimited;
  const int64_t most = NumberOr(group_max, kUnlimited);  // "max": no limit
  if (most == kUnlimited) return available;
  int64_t taken = NumberOr(group_current, 0);
  for (const char* pages_of_files : {"active_file", "inactive_file"}) {
    taken -= std::max<int64_t>(0, NumberBehind(pages_of_files, group_stat));
  }
  return std::min(available, std::max<int64_t>(0, most - std::max<int64_t>(0, taken)));
}

int64_t AvailableMemoryBytes() {
  return ParseAvailableMemory(Contents("/proc/meminfo"), Contents("/sys/fs/cgroup/memory.max"),
                              Contents("/sys/fs/cgroup/memory.current"), Contents("/sys/fs/cgroup/memory.stat"));
}

}  // namespace ssl
