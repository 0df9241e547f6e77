// SPDX-License-Identifier: Apache-2.0
//
// Gradients become their mean over all ranks, many in one operation, while the backward pass goes on (Li et al. 2020,
// "PyTorch Distributed", arXiv:2006.15704). Each parameter has its place in one of a few flat tensors, the buckets. As
// soon as backward has completed all gradients of a bucket, and those of the buckets before it, its reduction starts;
// the last parameters come first, as in backward.
//
//   SSL_RETURN_IF_ERROR(reducer.StartWithBackward());  // before the update's last backward pass; may be left out
//   loss.backward();
//   SSL_RETURN_IF_ERROR(reducer.Reduce());
//   optimizer.Step(found_inf);
//
// Buckets and their order follow from the parameters alone, never from the order in which gradients came: every start
// of a run adds in the same order.
//
// A parameter without a gradient on some ranks counts as zero there, which is what a loss that does not depend on it
// has; the first ones are named in the log. Without one on all ranks it stays without. So ranks never wait for each
// other over it. Which ones have a gradient is known to the hosts: it travels with the last bucket where that is the
// host's, and otherwise in a small reduction of its own between the hosts, so that nothing is read from the device.
//
// With a `compression`, gradients of a wider type travel in it: each rank rounds its own to it and divides them by the
// number of ranks, so that the sum of float16 does not overflow where none of its parts has; the sum is rounded as the
// communicator does, and the mean becomes a gradient of the parameter's type again (bf16_compress_hook and
// fp16_compress_hook of torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py). What float16 cannot hold is
// infinite on all ranks.
//
// After Reduce, gradients are views of the buckets, which the next update overwrites: who wants to keep one makes a
// copy. Nothing is allocated after the first update; buckets hold as much memory as the parameters, and half of it more
// with compression. A world of one has none, and nothing happens.
//
// Used by one thread; backward may call it from LibTorch's. May throw LibTorch exceptions. After an error, and when a
// backward pass failed after StartWithBackward, it is of no more use.
#ifndef SSL_CORE_GRADIENT_REDUCER_H_
#define SSL_CORE_GRADIENT_REDUCER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

struct GradientReducerOptions {
  // A bucket is closed by the gradient with which it reaches the size. The first one is smaller, so that the first
  // reduction starts early.
  int64_t bucket_bytes = int64_t{25} << 20;
  int64_t first_bucket_bytes = int64_t{1} << 20;
  std::optional<at::ScalarType> compression = std::nullopt;  // kBFloat16 or kHalf
};

class GradientReducer {
 public:
  // parameters: those to reduce, the same on all ranks, in the order of the forward pass. References outlive the
  // reducer. Nothing is exchanged yet; the first reduction makes a duplicate of `communicator`, so that other
  // operations during backward do not meet those of the reducer.
  GradientReducer(std::vector<NamedParameter> parameters, const GradientReducerOptions& options,
                  Communicator& communicator);
  // Waits for a reduction that was started, at most as long as the communicator does.
  ~GradientReducer();

  // Reductions start within the next backward pass, which has to be the last before Reduce. Collective.
  absl::Status StartWithBackward();

  // Collective. Errors are those of the communicator, and FailedPrecondition when, after StartWithBackward, a gradient
  // came twice.
  absl::Status Reduce();

 private:
  struct Slot;
  struct Bucket;
  class ArrivalHook;

  // Makes duplicate, buckets and hooks, the first time.
  absl::Status Prepare();
  void AssignSlots();
  void Allocate(Bucket& bucket);
  void AddHooks();

  // All gradients are outstanding.
  void Begin();
  // The gradient of the slot is complete.
  void Arrive(Bucket& bucket, Slot& slot);
  // From a hook, within backward.
  void ArriveInBackward(Bucket& bucket, Slot& slot);
  void StartCompleteBuckets();
  // What backward has not brought.
  void FillGaps();
  // Notes, and begins to exchange, which gradients are there.
  void WritePresence(Bucket& last);
  // After Finish of all buckets: of each parameter what the ranks' presence was reduced to, and what that is when it is
  // there on all of them.
  absl::StatusOr<at::Tensor> SharesOfRanks();
  float ShareOfAll() const;
  // Waits for its reduction.
  absl::Status Finish(Bucket& bucket);
  // Gives the parameters their reduced gradients.
  absl::Status Distribute();
  void NameIncomplete(const std::vector<std::string>& names);

  std::vector<NamedParameter> parameters_;
  const GradientReducerOptions options_;
  Communicator& communicator_;
  std::unique_ptr<Communicator> duplicate_;
  std::vector<std::unique_ptr<Bucket>> buckets_;  // in the order of their reductions
  // [parameters], float32, on the host: 1 for those with a gradient here. Reduced on its own, or a copy of it with the
  // last bucket.
  at::Tensor presence_;
  std::unique_ptr<Work> presence_work_;
  size_t next_bucket_ = 0;  // to start
  bool in_backward_ = false;
  std::string came_twice_;
  bool has_named_ = false;
};

}  // namespace ssl

#endif  // SSL_CORE_GRADIENT_REDUCER_H_
