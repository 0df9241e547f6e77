// SPDX-License-Identifier: Apache-2.0
//
// A Communicator between processes that have GPUs: tensors of NVIDIA GPUs go over LibTorch's c10d and its NCCL backend,
// from device to device, and all others over Gloo (gloo_communicator.h). Callers never ask where a tensor is. NCCL
// starts with the first tensor of a GPU, so that a machine without one can do everything else.
//
// Each rank uses one GPU, none of them another rank's.
//
// Operations on tensors of a GPU are in order on its current stream: a call returns when the stream has it, and what is
// enqueued there afterwards sees the result. So an error comes from a later call, at the latest when c10d's watchdog
// has waited for the timeout: every call of the communicator, its duplicates and parts, of tensors of the CPU as well,
// returns it from then on (kCausePeer, with Unavailable or DeadlineExceeded), and what GPUs have received since is
// worthless. Who keeps results asks, by a reduction on the CPU say, before he keeps them. Ranks do not compare the
// operations on GPUs: different ones wait for the timeout. Barrier is one of the CPU.
//
// Differences from ranks that are threads: those of Gloo.
#ifndef SSL_DISTRIBUTED_NCCL_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_NCCL_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/gloo_communicator.h"

namespace ssl {

// Whether this program was built with NCCL.
bool HasNccl();

// Collective. options: of the connections by Gloo; NCCL waits as long for an operation. Unimplemented in a program
// without NCCL; else the errors of MakeGlooCommunicator. Sets those environment variables TORCH_NCCL_* that decide
// whether a failure ends the process (it does not), unless they are set: call it before threads that read the
// environment.
absl::StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(const GlooOptions& options);

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_NCCL_COMMUNICATOR_H_
