// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/system_usage.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace ssl {
namespace {

constexpr double kKilobytesPerGb = 1024.0 * 1024.0;
constexpr double kPercent = 100.0;

// The numbers of the lines "<name>: <number> ...".
std::map<std::string, int64_t> NumberedLines(absl::string_view text) {
  std::map<std::string, int64_t> numbers;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(": \t"), absl::SkipEmpty());
    int64_t number = 0;
    if (words.size() > 1 && absl::SimpleAtoi(words[1], &number)) numbers[std::string(words[0])] = number;
  }
  return numbers;
}

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? kPercent * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

MemoryUsage ParseMemoryUsage(absl::string_view text) {
  std::map<std::string, int64_t> kilobytes = NumberedLines(text);
  const int64_t used = kilobytes["MemTotal"] - kilobytes["MemAvailable"];
  MemoryUsage usage;
  usage.used_gb = static_cast<double>(used) / kKilobytesPerGb;
  usage.used_percent = Percent(used, kilobytes["MemTotal"]);
  usage.swap_percent = Percent(kilobytes["SwapTotal"] - kilobytes["SwapFree"], kilobytes["SwapTotal"]);
  return usage;
}

CpuTimes ParseCpuTimes(absl::string_view text) {
  constexpr size_t kIdle = 3;
  constexpr size_t kWaitsForDisk = 4;
  constexpr size_t kGuest = 8;  // it and what follows are contained in others
  const std::vector<absl::string_view> lines = absl::StrSplit(text, absl::MaxSplits('\n', 1));
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ', absl::SkipEmpty());
  CpuTimes times;
  if (words.empty() || words[0] != "cpu") return times;
  for (size_t i = 0; i + 1 < words.size() && i < kGuest; ++i) {
    int64_t ticks = 0;
    if (!absl::SimpleAtoi(words[i + 1], &ticks)) return CpuTimes();
    times.total += ticks;
    if (i != kIdle && i != kWaitsForDisk) times.busy += ticks;
  }
  return times;
}

double BusyPercent(const CpuTimes& earlier, const CpuTimes& later) {
  return Percent(later.busy - earlier.busy, later.total - earlier.total);
}

int64_t ParseThreads(absl::string_view text) { return NumberedLines(text)["Threads"]; }

std::optional<int64_t> FreeDiskBytes(const std::string& path) {
  struct statvfs disk = {};
  if (path.empty() || statvfs(path.c_str(), &disk) != 0 || disk.f_blocks == 0) return std::nullopt;
  const double bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  return static_cast<int64_t>(std::min(bytes, 0x1p62));
}

std::string ReadProcFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace ssl
