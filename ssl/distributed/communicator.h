// SPDX-License-Identifier: Apache-2.0
//
// Collective operations between the ranks of one training run.
//
// A Communicator belongs to one rank and is used by one thread at a time. Every rank must call the same
// operations in the same order. A call returns when it has finished on this rank, or with DeadlineExceeded when
// another rank did not take part in time. A world of one is a world like any other: callers never test for it.
#ifndef SSL_DISTRIBUTED_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_COMMUNICATOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ssl {

enum class ReduceOp { kSum, kMax, kMean };

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // Replaces `tensor` (any shape, equal on all ranks) by the reduction over all ranks, in place.
  virtual absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) = 0;

  // Returns [size, ...shape of tensor]: row r is what rank r passed.
  virtual absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) = 0;

  // Overwrites `tensor` on every rank with the value on rank `root`.
  virtual absl::Status Broadcast(at::Tensor& tensor, int64_t root) = 0;

  // Returns once every rank has called it.
  virtual absl::Status Barrier() = 0;

  // A communicator of the same ranks whose operations do not meet those of this one, so that another thread can use
  // it at the same time. Lives at most as long as this one. Collective.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() = 0;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_COMMUNICATOR_H_
