// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process has, as the system counts it (thread-safe), and a part's state of it.
#ifndef SSL_HOOKS_PROCESS_MEMORY_H_
#define SSL_HOOKS_PROCESS_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ssl/core/stateful.h"

namespace ssl {

struct ProcessMemory {
  int64_t resident_bytes = 0;  // lies in RAM now
  int64_t peak_bytes = 0;      // most that has lain there since the process started
};

// Both are 0 where the system does not tell (no /proc).
ProcessMemory ReadProcessMemory();

// Returns how much the tensors take that a checkpoint keeps of `owner`. Its errors are those of CollectState.
absl::StatusOr<int64_t> BytesOfState(Stateful& owner);

}  // namespace ssl

#endif  // SSL_HOOKS_PROCESS_MEMORY_H_
