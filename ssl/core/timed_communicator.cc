// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/timed_communicator.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"

namespace ssl {
namespace {

// Notes the time of its block.
class Timing {
 public:
  explicit Timing(WaitingTime* waiting) : waiting_(*waiting), begin_(Clock::Real().Now()) {}
  ~Timing() { waiting_.Add(Clock::Real().Now() - begin_); }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

 private:
  WaitingTime& waiting_;
  const absl::Time begin_;
};

class TimedWork : public Work {
 public:
  TimedWork(std::unique_ptr<Work> base, WaitingTime* waiting) : base_(std::move(base)), waiting_(waiting) {}

  absl::Status Wait() override {
    const Timing timing(waiting_);
    return base_->Wait();
  }

 private:
  const std::unique_ptr<Work> base_;
  WaitingTime* const waiting_;
};

}  // namespace

class TimedCommunicator::Owning : public TimedCommunicator {
 public:
  Owning(std::unique_ptr<Communicator> base, std::shared_ptr<Family> family)
      : TimedCommunicator(*base, std::move(family)), owned_(std::move(base)) {
    family_->made.push_back(owned_.get());
  }
  ~Owning() override { family_->made.erase(std::find(family_->made.begin(), family_->made.end(), owned_.get())); }

 private:
  const std::unique_ptr<Communicator> owned_;
};

absl::Status TimedCommunicator::AllReduce(at::Tensor& tensor, ReduceOp op) {
  const Timing timing(&family_->waiting);
  return base_.AllReduce(tensor, op);
}

// To start one may take as long as the whole: a communicator may do it at once, and the last virtual rank of a process
// to come makes the exchange for all of them.
std::unique_ptr<Work> TimedCommunicator::StartAllReduce(at::Tensor& tensor, ReduceOp op) {
  const Timing timing(&family_->waiting);
  return std::make_unique<TimedWork>(base_.StartAllReduce(tensor, op), &family_->waiting);
}

absl::StatusOr<at::Tensor> TimedCommunicator::ReduceScatter(const at::Tensor& tensor, ReduceOp op) {
  const Timing timing(&family_->waiting);
  return base_.ReduceScatter(tensor, op);
}

absl::StatusOr<at::Tensor> TimedCommunicator::AllGather(const at::Tensor& tensor) {
  const Timing timing(&family_->waiting);
  return base_.AllGather(tensor);
}

absl::Status TimedCommunicator::Broadcast(at::Tensor& tensor, int64_t root) {
  const Timing timing(&family_->waiting);
  return base_.Broadcast(tensor, root);
}

absl::Status TimedCommunicator::Barrier() {
  const Timing timing(&family_->waiting);
  return base_.Barrier();
}

// Until it is this rank's turn again. What `wait` does may be work (AgreeOnWork), and operations in it are noted as
// all.
void TimedCommunicator::LetOthersGoOn(absl::FunctionRef<void()> wait) {
  const absl::Time begin = Clock::Real().Now();
  absl::Duration in_wait;
  base_.LetOthersGoOn([&] {
    const absl::Time wait_begin = Clock::Real().Now();
    wait();
    in_wait = Clock::Real().Now() - wait_begin;
  });
  family_->waiting.Add(Clock::Real().Now() - begin - in_wait);
}

absl::StatusOr<std::unique_ptr<Communicator>> TimedCommunicator::Duplicate() {
  const Timing timing(&family_->waiting);
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> duplicate, base_.Duplicate());
  return std::make_unique<Owning>(std::move(duplicate), family_);
}

absl::StatusOr<std::unique_ptr<Communicator>> TimedCommunicator::Split(int64_t color) {
  const Timing timing(&family_->waiting);
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> group, base_.Split(color));
  return std::make_unique<Owning>(std::move(group), family_);
}

// One that cannot tell the others, for want of a thread or of memory, hinders no other, and `why` is the run's error.
void TimedCommunicator::Abort(const absl::Status& why) {
  std::vector<Communicator*> all = family_->made;
  all.insert(all.begin(), &base_);
  for (Communicator* const communicator : all) {
    GuardTorch("telling other ranks", [&] {
      communicator->Abort(why);
      return absl::OkStatus();
    }).IgnoreError();
  }
}

}  // namespace ssl
