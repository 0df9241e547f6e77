// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/testing/thread_communicator.h"

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/distributed/reduce_rows.h"

namespace ssl {

// Every operation is one round: all ranks deposit a tensor, and collect all deposits once the last has come. With
// the standard library's mutex: Abseil's lies in a package that is not instrumented, and ThreadSanitizer would not see
// it.
class ThreadWorld::Rendezvous {
 public:
  Rendezvous(int64_t size, absl::Duration timeout) : size_(size), timeout_(timeout), next_(size), left_(size) {}

  int64_t size() const { return size_; }

  // Does not wait. The number of the round.
  absl::StatusOr<int64_t> Deposit(int64_t rank, const std::string& operation, at::Tensor tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    SSL_RETURN_IF_ERROR(left_[rank]);
    const int64_t number = next_[rank]++;
    Round& round = rounds_[number];
    if (round.arrived == 0) {
      round.operation = operation;
      round.deposits.resize(size_);
    }
    if (operation != round.operation) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " calls ", operation, " while another rank calls ", round.operation));
    }
    round.deposits[rank] = std::move(tensor);
    if (++round.arrived == size_) complete_.notify_all();
    return number;
  }

  absl::StatusOr<std::vector<at::Tensor>> Collect(int64_t rank, int64_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    Round& round = rounds_[number];
    const auto is_over = [&] { return round.arrived == size_ || HasLostARank(number); };
    const bool in_time = complete_.wait_for(lock, absl::ToChronoMilliseconds(timeout_), is_over);
    if (in_time && round.arrived < size_) {
      return absl::UnavailableError(
          absl::StrCat("rank ", rank, " waits in ", round.operation, " for one that left: ", WhyLeft()));
    }
    if (!in_time) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", rank, " waited ", absl::FormatDuration(timeout_), " in ",
                                                      round.operation, ": ", round.arrived, " of ", size_,
                                                      " ranks are there"));
    }
    std::vector<at::Tensor> deposits = round.deposits;
    if (++round.collected == size_) rounds_.erase(number);
    return deposits;
  }

  absl::StatusOr<std::vector<at::Tensor>> Exchange(int64_t rank, const std::string& operation, at::Tensor tensor) {
    SSL_ASSIGN_OR_RETURN(const int64_t number, Deposit(rank, operation, std::move(tensor)));
    return Collect(rank, number);
  }

  // Of the lowest rank that left.
  std::string WhyLeft() const {
    const auto left = std::find_if(left_.begin(), left_.end(), [](const absl::Status& why) { return !why.ok(); });
    return left == left_.end() ? "" : std::string(left->message());
  }

  // All ranks take part again, from the first round on.
  void Reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::fill(left_.begin(), left_.end(), absl::OkStatus());
    std::fill(next_.begin(), next_.end(), int64_t{0});
    rounds_.clear();
    children_.clear();
  }

  void Leave(int64_t rank, const absl::Status& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    left_[rank].Update(why);
    complete_.notify_all();
  }

  // The meeting place of `size` of the ranks: the same object for all that ask for the same name.
  std::shared_ptr<Rendezvous> Child(const std::string& name, int64_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Rendezvous>& child = children_[name];
    if (child == nullptr) child = std::make_shared<Rendezvous>(size, timeout_);
    return child;
  }

 private:
  struct Round {
    std::string operation;
    std::vector<at::Tensor> deposits;
    int64_t arrived = 0;
    int64_t collected = 0;
  };

  bool HasLostARank(int64_t number) const {
    for (int64_t rank = 0; rank < size_; ++rank) {
      if (!left_[rank].ok() && next_[rank] <= number) return true;
    }
    return false;
  }

  const int64_t size_;
  const absl::Duration timeout_;
  std::mutex mutex_;  // of all that follows
  std::condition_variable complete_;
  std::vector<int64_t> next_;        // the round of each rank's next operation
  std::vector<absl::Status> left_;   // why, of a rank that takes no part any more
  std::map<int64_t, Round> rounds_;  // that some rank has not collected
  std::map<std::string, std::shared_ptr<Rendezvous>> children_;
};

class ThreadWorld::RankCommunicator : public Communicator {
 public:
  // A duplicate may outlive the world, in a graph of autograd that a test keeps.
  RankCommunicator(int64_t rank, std::shared_ptr<Rendezvous> rendezvous)
      : rank_(rank), rendezvous_(std::move(rendezvous)) {}
  // Whoever waits for this rank would wait in vain.
  ~RankCommunicator() override { rendezvous_->Leave(rank_, absl::UnavailableError("the rank has ended")); }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return rendezvous_->size(); }

  absl::Status AllReduce(at::Tensor& tensor, ReduceOp op) override { return StartAllReduce(tensor, op)->Wait(); }

  std::unique_ptr<Work> StartAllReduce(at::Tensor& tensor, ReduceOp op) override {
    return std::make_unique<StartedAllReduce>(*this, tensor, op);
  }

  absl::StatusOr<at::Tensor> ReduceScatter(const at::Tensor& tensor, ReduceOp op) override {
    SSL_RETURN_IF_ERROR(CheckRows(tensor));
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, Gather("reduce-scatter", tensor));  // [ranks, rows, ...]
    return ReduceRows(all.select(1, rank_), op);
  }

  absl::StatusOr<at::Tensor> AllGather(const at::Tensor& tensor) override { return Gather("all-gather", tensor); }

  absl::Status Broadcast(at::Tensor& tensor, int64_t root) override {
    SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> all,
                         rendezvous_->Exchange(rank_, "broadcast", tensor.detach().clone()));
    if (root < 0 || root >= size()) return absl::InvalidArgumentError(absl::StrCat("broadcast root is ", root));
    tensor.copy_(all[root]);
    return absl::OkStatus();
  }

  absl::Status Barrier() override { return rendezvous_->Exchange(rank_, "barrier", at::Tensor()).status(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Duplicate() override {
    SSL_RETURN_IF_ERROR(rendezvous_->Exchange(rank_, "duplicate", at::Tensor()).status());
    return std::make_unique<RankCommunicator>(rank_,
                                              rendezvous_->Child(absl::StrCat("duplicate ", children_++), size()));
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(int64_t color) override {
    SSL_ASSIGN_OR_RETURN(const at::Tensor colors, Gather("split", at::full({}, color, at::kLong)));  // [ranks]
    const at::Tensor same = colors.eq(color);
    std::shared_ptr<Rendezvous> group =
        rendezvous_->Child(absl::StrCat("split ", children_++, " color ", color), same.sum().item<int64_t>());
    return std::make_unique<RankCommunicator>(same.slice(0, 0, rank_).sum().item<int64_t>(), std::move(group));
  }

  void Abort(const absl::Status& why) override { rendezvous_->Leave(rank_, why); }

 private:
  // Cloned, because the owner may overwrite its tensor while slower ranks still read it.
  class StartedAllReduce : public Work {
   public:
    StartedAllReduce(RankCommunicator& communicator, const at::Tensor& tensor, ReduceOp op)
        : communicator_(communicator),
          tensor_(tensor),
          op_(op),
          round_(communicator.rendezvous_->Deposit(communicator.rank_, "all-reduce", tensor.detach().clone())) {}

    absl::Status Wait() override {
      SSL_RETURN_IF_ERROR(round_.status());
      SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> all,
                           communicator_.rendezvous_->Collect(communicator_.rank_, *round_));
      tensor_.detach().copy_(ReduceRows(at::stack(all), op_));
      return absl::OkStatus();
    }

   private:
    RankCommunicator& communicator_;
    at::Tensor tensor_;
    const ReduceOp op_;
    const absl::StatusOr<int64_t> round_;
  };

  absl::StatusOr<at::Tensor> Gather(const std::string& operation, const at::Tensor& tensor) {
    SSL_ASSIGN_OR_RETURN(const std::vector<at::Tensor> all,
                         rendezvous_->Exchange(rank_, operation, tensor.detach().clone()));
    return at::stack(all);
  }

  const int64_t rank_;
  const std::shared_ptr<Rendezvous> rendezvous_;
  int64_t children_ = 0;
};

ThreadWorld::ThreadWorld(int64_t size, absl::Duration timeout)
    : rendezvous_(std::make_shared<Rendezvous>(size, timeout)) {}

ThreadWorld::~ThreadWorld() = default;

absl::Status ThreadWorld::Run(const std::function<absl::Status(Communicator&)>& rank_main) {
  rendezvous_->Reset();
  std::vector<absl::Status> statuses(rendezvous_->size());
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < rendezvous_->size(); ++rank) {
    threads.emplace_back([this, rank, &rank_main, &statuses] {
      // LibTorch runs the backward passes of a GPU on one thread, where ranks that wait for each other would never
      // meet.
      c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
      RankCommunicator communicator(rank, rendezvous_);
      // An exception that left the thread would end the program.
      statuses[rank] = GuardTorch(absl::StrCat("rank ", rank), [&] { return rank_main(communicator); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) SSL_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace ssl
