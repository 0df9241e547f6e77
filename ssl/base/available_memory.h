// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process may still take.
#ifndef SSL_BASE_AVAILABLE_MEMORY_H_
#define SSL_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ssl {

// In bytes: what the kernel calls available, or what is left of the limit of the process's control group (version 2,
// as containers have it) where that is less. The largest number where neither is told.
int64_t AvailableMemoryBytes();

// The same from the contents of /proc/meminfo and of the group's memory.max, memory.current and memory.stat; "": there
// is no such file. The pages of files that the group has read count as free, as they do for the kernel's number: it
// gives them back at once.
int64_t ParseAvailableMemory(absl::string_view meminfo, absl::string_view group_max, absl::string_view group_current,
                             absl::string_view group_stat);

}  // namespace ssl

#endif  // SSL_BASE_AVAILABLE_MEMORY_H_
