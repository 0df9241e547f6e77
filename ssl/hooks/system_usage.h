// SPDX-License-Identifier: Apache-2.0
//
// How busy the machine is that this process runs on: Linux's /proc, and the disk. What the system does not tell is 0.
#ifndef SSL_HOOKS_SYSTEM_USAGE_H_
#define SSL_HOOKS_SYSTEM_USAGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

// Of the machine. Memory that files occupy and that programs could have is not used.
struct MemoryUsage {
  double used_gb = 0.0;  // 2^30 bytes
  double used_percent = 0.0;
  double swap_percent = 0.0;
};

// text: of /proc/meminfo.
MemoryUsage ParseMemoryUsage(absl::string_view text);

// Processor time of the machine since it started, over all cores, in ticks of the system.
struct CpuTimes {
  int64_t busy = 0;
  int64_t total = 0;  // with what cores waited
};

// text: of /proc/stat. A guest's time is the host's already.
CpuTimes ParseCpuTimes(absl::string_view text);

// Share of the time between the two in which cores were busy; 0 when no time has passed.
double BusyPercent(const CpuTimes& earlier, const CpuTimes& later);

// text: of /proc/self/status. The number of threads of the process.
int64_t ParseThreads(absl::string_view text);

// Returns how much a process without privileges can still write there; nothing for a path that is none.
std::optional<int64_t> FreeDiskBytes(const std::string& path);

// The text of a file of /proc; "" when there is none.
std::string ReadProcFile(const std::string& path);

}  // namespace ssl

#endif  // SSL_HOOKS_SYSTEM_USAGE_H_
