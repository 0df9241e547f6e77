// SPDX-License-Identifier: Apache-2.0
//
// Sums of what sources tell of images that could not be read (replaced_images.h).
#ifndef SSL_DATA_FAULT_COUNTS_H_
#define SSL_DATA_FAULT_COUNTS_H_

#include <array>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "ssl/data/read_fault.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// How many images have each fault, by its value. images: by position in the data set.
std::array<int64_t, kNumReadFaults> CountFaults(const std::map<int64_t, ReadFault>& images);

// Adds the images of all other ranks, each once. Collective.
absl::Status JoinFaults(Communicator& communicator, std::map<int64_t, ReadFault>* images);

}  // namespace ssl

#endif  // SSL_DATA_FAULT_COUNTS_H_
