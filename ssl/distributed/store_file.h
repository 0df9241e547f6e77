// SPDX-License-Identifier: Apache-2.0
//
// The file at which ranks meet (RendezvousOptions::file), seen from outside.
#ifndef SSL_DISTRIBUTED_STORE_FILE_H_
#define SSL_DISTRIBUTED_STORE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ssl {

// InvalidArgument when ranks cannot meet at `path`: its directory is not there, it is no file, or it ends in something
// that ranks have not written, or not to its end. No file at all is what a start expects.
absl::Status CheckStoreFile(const std::string& path);

// Whether all that came there were processes of this machine and have ended, whatever the last of them was cut off in.
// False for no file, and of one that a crash of the machine itself has left, whose processes it does not know any more.
// InvalidArgument where none can be read.
absl::StatusOr<bool> IsStoreOfEndedRanks(const std::string& path);

// Removes such a file, and returns true. Any other stays as it is. Internal when it cannot be removed.
// For whoever starts all ranks, before the first of them.
absl::StatusOr<bool> RemoveStoreOfEndedRanks(const std::string& path);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_STORE_FILE_H_
