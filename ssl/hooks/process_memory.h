// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process has, as the system counts it. Thread-safe.
#ifndef SSL_HOOKS_PROCESS_MEMORY_H_
#define SSL_HOOKS_PROCESS_MEMORY_H_

#include <cstdint>

namespace ssl {

struct ProcessMemory {
  int64_t resident_bytes = 0;  // lies in RAM now
  int64_t peak_bytes = 0;      // most that has lain there since the process started
};

// Both are 0 where the system does not tell (no /proc).
ProcessMemory ReadProcessMemory();

}  // namespace ssl

#endif  // SSL_HOOKS_PROCESS_MEMORY_H_
