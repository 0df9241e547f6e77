// SPDX-License-Identifier: Apache-2.0
//
// A world of one rank: every collective operation is complete as soon as it is called.
#ifndef SSL_DISTRIBUTED_LOCAL_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_LOCAL_COMMUNICATOR_H_

#include <memory>

#include "ssl/distributed/communicator.h"

namespace ssl {

std::unique_ptr<Communicator> MakeLocalCommunicator();

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_LOCAL_COMMUNICATOR_H_
