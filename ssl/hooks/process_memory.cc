// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/process_memory.h"

#include <ATen/core/Tensor.h>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/core/state_dict.h"

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

absl::StatusOr<int64_t> BytesOfState(Stateful& owner) {
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(owner));
  int64_t bytes = 0;
  for (const NamedTensor& entry : state) {
    if (entry.tensor.defined()) bytes += static_cast<int64_t>(entry.tensor.nbytes());
  }
  return bytes;
}

}  // namespace ssl
