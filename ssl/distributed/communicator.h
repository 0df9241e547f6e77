// SPDX-License-Identifier: Apache-2.0
//
// Collective operations between the ranks of one training run.
//
// A Communicator belongs to one rank and is used by one thread at a time. Every rank must call the same
// operations in the same order. A call returns when it has finished on this rank. A world of one is a world like any
// other: callers never test for it.
//
// Errors of all operations. Unavailable: a connection to another rank broke, or its process ended. DeadlineExceeded:
// another rank did not take part in time. Internal: ranks called different operations, where the implementation can
// tell. After these three the communicator is of no more use: later calls may fail with the same error, and tensors
// that were to be written hold anything. InvalidArgument: an argument that no rank may pass; nothing was exchanged.
#ifndef SSL_DISTRIBUTED_COMMUNICATOR_H_
#define SSL_DISTRIBUTED_COMMUNICATOR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ssl {

enum class ReduceOp { kSum, kMax, kMean };

// An operation that was started. Destroyed without Wait, it goes on, because other ranks need it; what its tensor holds
// then has no meaning.
class Work {
 public:
  virtual ~Work() = default;

  // Returns when the operation has finished on this rank, with its error. Once, on the thread that uses the
  // communicator, which is still there.
  virtual absl::Status Wait() = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // Replaces `tensor` (any shape, equal on all ranks) by the reduction over all ranks, in place.
  virtual absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) = 0;

  // The same, begun: never null, and every error is Wait's. Until Wait has returned nobody may touch `tensor`, while
  // other operations may be called; they run in the order of the calls. The default calls AllReduce, at once.
  virtual std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op);

  // Returns the reduction over all ranks of row rank() of `tensor`, which is [size, ...] on all ranks, without that
  // dimension. The default reduces all rows.
  virtual absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op);

  // Returns [size, ...shape of tensor]: row r is what rank r passed.
  virtual absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) = 0;

  // Overwrites `tensor` on every rank with the value on rank `root`.
  virtual absl::Status Broadcast(at::Tensor& tensor, int64_t root) = 0;

  // Returns once every rank has called it.
  virtual absl::Status Barrier() = 0;

  // Runs `wait`, in which this thread waits, by other means than operations, for what other ranks have to do first: for
  // a thread of its own, say, that uses a duplicate. Ranks that take turns (virtual_world.h) go on meanwhile; the
  // default just calls it. Not collective.
  virtual void LetOthersGoOn(absl::FunctionRef<void()> wait) { wait(); }

  // A communicator of the same ranks whose operations do not meet those of this one, so that another thread can use
  // it at the same time. Lives at most as long as this one. Collective.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() = 0;

  // A communicator of the ranks that pass the same `color`, in the order of their ranks here; messages count them as
  // they are counted there. Like a duplicate otherwise. Collective over all ranks of this one. The default is
  // Unimplemented, for worlds that have no part.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color);

  // For a caller that broke off between two operations, where the others cannot be met again: ends this rank's part, so
  // that the operations in which they wait for it, now or later, fail at once and say `why` where they can. Its own
  // return `why`, an error, from now on. Nothing that was started is left. Not collective. The default does nothing:
  // there is nobody who waits, or nobody who can be told before a timeout.
  virtual void Abort(const absl::Status& why) {}

 protected:
  // InvalidArgument unless `tensor` can be given to ReduceScatter.
  absl::Status CheckRows(const at::Tensor& tensor) const;
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_COMMUNICATOR_H_
