// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/process_memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace ssl {

ProcessMemory ReadProcessMemory() {
  constexpr int64_t kBytesPerUnit = 1024;  // the file says "kB"
  std::ifstream status("/proc/self/status");
  ProcessMemory memory;
  for (std::string key; status >> key; status.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    if (key == "VmRSS:" && status >> memory.resident_bytes) memory.resident_bytes *= kBytesPerUnit;
    if (key == "VmHWM:" && status >> memory.peak_bytes) memory.peak_bytes *= kBytesPerUnit;
  }
  return memory;
}

}  // namespace ssl
