// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/testing/thread_communicator.h"

#include <ATen/ops/stack.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"

namespace ssl {

// Every operation is one exchange: all ranks deposit a tensor, wait for the last, and take a copy of all deposits. With
// the standard library's mutex: Abseil's lies in a package that is not instrumented, and ThreadSanitizer would not see
// it.
class ThreadWorld::Rendezvous {
 public:
  Rendezvous(int64_t size, absl::Duration timeout) : size_(size), timeout_(timeout), deposits_(size) {}

  int64_t size() const { return size_; }

  absl::StatusOr<std::vector<at::Tensor>> Exchange(int64_t rank, const std::string& operation, at::Tensor tensor) {
    std::unique_lock<std::mutex> lock(mutex_);
    const int64_t round = round_;
    if (arrived_ > 0 && operation != operation_) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " calls ", operation, " while another rank calls ", operation_));
    }
    operation_ = operation;
    deposits_[rank] = std::move(tensor);
    if (++arrived_ == size_) {
      exchanged_ = deposits_;
      arrived_ = 0;
      ++round_;
      finished_.notify_all();
      return exchanged_;
    }
    if (!finished_.wait_for(lock, absl::ToChronoMilliseconds(timeout_), [&] { return round_ != round; })) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", rank, " waited ", absl::FormatDuration(timeout_), " in ",
                                                      operation, ": ", arrived_, " of ", size_, " ranks are there"));
    }
    return exchanged_;
  }

  // The meeting place of a duplicate: the same object for every rank that asks for the same number.
  Rendezvous& Child(size_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (children_.size() <= number) children_.push_back(std::make_unique<Rendezvous>(size_, timeout_));
    return *children_[number];
  }

 private:
  const int64_t size_;
  const absl::Duration timeout_;
  std::mutex mutex_;  // of all that follows
  std::condition_variable finished_;
  int64_t round_ = 0;
  int64_t arrived_ = 0;
  std::string operation_;
  std::vector<at::Tensor> deposits_;
  std::vector<at::Tensor> exchanged_;
  std::vector<std::unique_ptr<Rendezvous>> children_;
};

class ThreadWorld::RankCommunicator : public Communicator {
 public:
  RankCommunicator(int64_t rank, Rendezvous& rendezvous) : rank_(rank), rendezvous_(rendezvous) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return rendezvous_.size(); }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override {
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, AllGather(tensor));
    switch (op) {
      case ReduceOp::kSum:
        tensor.copy_(all.sum(0));
        break;
      case ReduceOp::kMean:
        tensor.copy_(all.sum(0).div(size()));
        break;
      case ReduceOp::kMax:
        tensor.copy_(all.amax(0));
        break;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override {
    // Cloned, because the owner may overwrite its tensor while slower ranks still read it.
    SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> all,
                         rendezvous_.Exchange(rank_, "all-gather", tensor.detach().clone()));
    return at::stack(all);
  }

  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override {
    SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> all,
                         rendezvous_.Exchange(rank_, "broadcast", tensor.detach().clone()));
    if (root < 0 || root >= size()) return absl::InvalidArgumentError(absl::StrCat("broadcast root is ", root));
    tensor.copy_(all[root]);
    return absl::OkStatus();
  }

  absl::Status Barrier() override { return rendezvous_.Exchange(rank_, "barrier", at::Tensor()).status(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    SSL_RETURN_IF_ERROR(rendezvous_.Exchange(rank_, "duplicate", at::Tensor()).status());
    return std::make_unique<RankCommunicator>(rank_, rendezvous_.Child(duplicates_++));
  }

 private:
  const int64_t rank_;
  Rendezvous& rendezvous_;
  size_t duplicates_ = 0;
};

ThreadWorld::ThreadWorld(int64_t size, absl::Duration timeout)
    : rendezvous_(std::make_unique<Rendezvous>(size, timeout)) {}

ThreadWorld::~ThreadWorld() = default;

absl::Status ThreadWorld::Run(const std::function<absl::Status(Communicator&)>& rank_main) {
  std::vector<absl::Status> statuses(rendezvous_->size());
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < rendezvous_->size(); ++rank) {
    threads.emplace_back([this, rank, &rank_main, &statuses] {
      RankCommunicator communicator(rank, *rendezvous_);
      // An exception that left the thread would end the program.
      statuses[rank] = GuardTorch(absl::StrCat("rank ", rank), [&] { return rank_main(communicator); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) SSL_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace ssl
