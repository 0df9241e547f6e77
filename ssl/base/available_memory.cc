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

}  // namespace

int64_t ParseAvailableMemory(absl::string_view meminfo, absl::string_view group_max, absl::string_view group_current) {
  constexpr int64_t kBytesPerKilobyte = 1024;
  int64_t available = kUnlimited;
  for (const absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 2 || words[0] != "MemAvailable:") continue;
    const int64_t kilobytes = NumberOr(words[1], -1);
    if (kilobytes >= 0) available = kilobytes * kBytesPerKilobyte;
  }
  const int64_t most = NumberOr(group_max, kUnlimited);  // "max": no limit
  if (most == kUnlimited) return available;
  return std::min(available, std::max<int64_t>(0, most - NumberOr(group_current, 0)));
}

int64_t AvailableMemoryBytes() {
  return ParseAvailableMemory(Contents("/proc/meminfo"), Contents("/sys/fs/cgroup/memory.max"),
                              Contents("/sys/fs/cgroup/memory.current"));
}

}  // namespace ssl
