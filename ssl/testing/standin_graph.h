// SPDX-License-Identifier: Apache-2.0
//
// The stand-in device's counterpart of a CUDA graph: what a replay on a GPU would get wrong (a learning rate as a
// number of the host, a branch, a tensor uploaded in the step) it gets wrong, too, on any machine. docs/devices.md.
#ifndef SSL_TESTING_STANDIN_GRAPH_H_
#define SSL_TESTING_STANDIN_GRAPH_H_

#include <cstdint>

#include "absl/status/status.h"

namespace ssl {

struct Registries;

// Installs the device, and adds its DeviceGraph (ssl/core/device_graph.h) under the name of its type, "standin".
// Record fails with what GuardTorch makes of an exception of the work, with FailedPrecondition for a read or an upload,
// and inside another recording of the thread. Threads that the work starts itself are not recorded; autograd's are.
// AlreadyExists when the name is taken.
absl::Status RegisterStandinGraph(Registries* registries);

// How many recordings this process keeps. Thread-safe.
int64_t StandinRecordings();

// What HasRoomBeside of all of them says from here on; true at first. Thread-safe.
void SetStandinRoom(bool has_room);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_GRAPH_H_
