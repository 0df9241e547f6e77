// SPDX-License-Identifier: Apache-2.0
//
// A world whose other ranks are imagined, so that what a run of many would do can be told by one process: rank 0, in a
// world of which every other rank passes just what this one passes.
#ifndef SSL_DISTRIBUTED_PREVIEW_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_PREVIEW_COMMUNICATOR_H_

#include <cstdint>
#include <memory>

#include "ssl/distributed/communicator.h"

namespace ssl {

// Nothing is ever waited for. size: at least 1.
std::unique_ptr<Communicator> MakePreviewCommunicator(int64_t size);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_PREVIEW_COMMUNICATOR_H_
