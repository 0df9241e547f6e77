// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/virtual_meeting.h"

#include <iterator>
#include <numeric>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/default_generators.h"
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"

namespace ssl {

Turns::Turns(int64_t ranks) : has_ended_(ranks), generators_(ranks, GeneratorState()) {}

void Turns::Begin(int64_t local) {
  std::unique_lock<std::mutex> lock(mutex_);
  Take(local, lock);
}

void Turns::End(int64_t local, const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  first_error_.Update(status);
  has_ended_[local] = true;
  if (IsMine()) holder_ = std::thread::id();
  changed_.notify_all();
}

void Turns::Wait(int64_t local, std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> is_done) {
  if (is_done()) return;
  const bool has_turn = IsMine();
  if (has_turn) Give(local);
  changed_.wait(lock, is_done);
  if (has_turn) Take(local, lock);
}

void Turns::Work(int64_t local, std::unique_lock<std::mutex>& lock, absl::FunctionRef<void()> work) {
  const bool has_turn = IsMine();
  if (has_turn) Give(local);
  lock.unlock();
  work();
  lock.lock();
  if (has_turn) Take(local, lock);
}

void Turns::Take(int64_t local, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return holder_ == std::thread::id(); });
  holder_ = std::this_thread::get_id();
  SetGeneratorState(generators_[local]);
}

void Turns::Give(int64_t local) {
  generators_[local] = GeneratorState();
  holder_ = std::thread::id();
  changed_.notify_all();
}

Meeting::Meeting(Turns& turns, std::vector<int64_t> locals, std::vector<int64_t> members,
                 std::unique_ptr<Communicator> processes)
    : turns_(turns),
      locals_(std::move(locals)),
      members_(std::move(members)),
      processes_(std::move(processes)),
      size_(std::accumulate(members_.begin(), members_.end(), int64_t{0})),
      first_rank_(std::accumulate(members_.begin(), members_.begin() + processes_->rank(), int64_t{0})),
      next_(locals_.size()),
      left_(locals_.size()) {}

int64_t Meeting::Deposit(int64_t place, const std::string& operation, at::Tensor tensor, const Conclusion& conclude) {
  std::unique_lock<std::mutex> lock(turns_.mutex());
  const int64_t number = next_[place]++;
  if (!left_[place].ok()) return number;
  Round& round = rounds_[number];
  round.deposits.resize(locals_.size());
  round.has_deposited.resize(locals_.size());
  round.has_collected.resize(locals_.size());
  if (round.arrived == 0) round.operation = operation;
  if (round.operation != operation) round.mismatch = operation;
  round.deposits[place] = std::move(tensor);
  round.has_deposited[place] = true;
  if (++round.arrived < static_cast<int64_t>(locals_.size())) return number;
  // All others of this round wait, or are on their way to the next one: none touches it. Without the turn, because
  // ranks of other rounds, of another group, may have to come first in another process.
  at::Tensor result;
  absl::Status status;
  // Where the turn cannot be given or taken, which asks the device for its generator, the others are told as well.
  status.Update(GuardTorch(operation, [&] {
    UseProcesses(place, lock, [&] { status = Conclude(round, conclude, &result); });
    return absl::OkStatus();
  }));
  round.status = std::move(status);
  round.result = std::move(result);
  round.is_complete = true;
  turns_.NotifyAll();
  return number;
}

void Meeting::UseProcesses(int64_t place, std::unique_lock<std::mutex>& lock, absl::FunctionRef<void()> use) {
  // Taking the turn again, behind its condition, gives the mutex up once more.
  while (is_in_use_) turns_.Wait(locals_[place], lock, [this] { return !is_in_use_; });
  is_in_use_ = true;
  const auto done = absl::MakeCleanup([this] {
    is_in_use_ = false;
    turns_.NotifyAll();
  });
  turns_.Work(locals_[place], lock, use);
}

absl::Status Meeting::Conclude(const Round& round, const Conclusion& conclude, at::Tensor* result) {
  if (!round.mismatch.empty()) {
    return absl::InternalError(
        absl::StrCat("virtual ranks of one process call ", round.operation, " and ", round.mismatch));
  }
  return GuardTorch(round.operation, [&]() -> absl::Status {
    SSL_ASSIGN_OR_RETURN(*result, conclude(round.deposits));
    return absl::OkStatus();
  });
}

absl::StatusOr<at::Tensor> Meeting::Collect(int64_t place, int64_t number) {
  std::unique_lock<std::mutex> lock(turns_.mutex());
  const auto found = rounds_.find(number);
  if (found == rounds_.end() && !left_[place].ok()) return left_[place];  // it has deposited nothing
  Round& round = rounds_.at(number);
  absl::StatusOr<at::Tensor> result = ResultOf(place, round, lock);
  round.has_collected[place] = true;
  if (IsForgotten(round)) rounds_.erase(number);
  return result;
}

absl::StatusOr<at::Tensor> Meeting::ResultOf(int64_t place, const Round& round, std::unique_lock<std::mutex>& lock) {
  SSL_RETURN_IF_ERROR(left_[place]);
  int64_t missing = -1;
  turns_.Wait(locals_[place], lock, [&] {
    missing = round.is_complete ? -1 : GoneWithoutDeposit(round);
    return round.is_complete || missing >= 0;
  });
  if (missing >= 0) return Gone(round.operation, missing);
  SSL_RETURN_IF_ERROR(round.status);
  return round.result;
}

bool Meeting::IsForgotten(const Round& round) const {
  for (size_t i = 0; i < locals_.size(); ++i) {
    if (!round.has_collected[i] && (round.has_deposited[i] || !IsGone(i))) return false;
  }
  return true;
}

int64_t Meeting::GoneWithoutDeposit(const Round& round) const {
  for (size_t i = 0; i < locals_.size(); ++i) {
    if (IsGone(i) && !round.has_deposited[i]) return static_cast<int64_t>(i);
  }
  return -1;
}

absl::Status Meeting::Gone(const std::string& operation, int64_t place) const {
  const std::string why =
      left_[place].ok() ? "has ended" : absl::StrCat("takes no part any more: ", left_[place].message());
  return WithDetail(
      absl::UnavailableError(absl::StrCat(operation, ": virtual rank ", locals_[place], " of this process ", why)),
      kDetailCause, kCausePeer);
}

void Meeting::Leave(int64_t place, const absl::Status& why) {
  std::unique_lock<std::mutex> lock(turns_.mutex());
  if (!left_[place].ok()) return;
  left_[place] = why;
  for (auto round = rounds_.begin(); round != rounds_.end();) {
    round = IsForgotten(round->second) ? rounds_.erase(round) : std::next(round);
  }
  turns_.NotifyAll();
  // A round that has its deposits is for others to end.
  UseProcesses(place, lock, [&] { processes_->Abort(why); });
}

void Meeting::LetOthersGoOn(int64_t place, absl::FunctionRef<void()> wait) {
  std::unique_lock<std::mutex> lock(turns_.mutex());
  turns_.Work(locals_[place], lock, wait);
}

void Meeting::AddChild(int64_t number, int64_t color, std::shared_ptr<Meeting> child) {
  const std::lock_guard<std::mutex> lock(turns_.mutex());
  children_[{number, color}] = std::move(child);
}

std::shared_ptr<Meeting> Meeting::Child(int64_t number, int64_t color) {
  const std::lock_guard<std::mutex> lock(turns_.mutex());
  return children_.at({number, color});
}

}  // namespace ssl
