// SPDX-License-Identifier: Apache-2.0
//
// Which of the processes of a world on one machine this is: it picks the process's GPU, whoever started the ranks.
#ifndef SSL_DISTRIBUTED_PROCESS_NUMBER_H_
#define SSL_DISTRIBUTED_PROCESS_NUMBER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// From 0, among the processes of the communicator's ranks on this machine, or in this container, in the order of the
// lowest rank that each has; ranks that are threads of one process have its number. sees: what a process sees of the
// machine, such as its GPUs; processes that see something else are counted by themselves. Collective.
absl::StatusOr<int64_t> ProcessNumberOnHost(absl::string_view sees, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_PROCESS_NUMBER_H_
