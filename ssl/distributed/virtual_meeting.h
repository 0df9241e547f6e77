// SPDX-License-Identifier: Apache-2.0
//
// What the virtual ranks of one process share (virtual_world.h): whose turn it is, and where they exchange tensors.
#ifndef SSL_DISTRIBUTED_VIRTUAL_MEETING_H_
#define SSL_DISTRIBUTED_VIRTUAL_MEETING_H_

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// Which rank of this process runs, and which have ended. While a rank has its turn, LibTorch's generator of the CPU is
// its own. Thread-safe; with the standard library's mutex, because ThreadSanitizer does not see Abseil's.
class Turns {
 public:
  // All ranks begin with what the process's generator would draw now.
  explicit Turns(int64_t ranks);

  std::mutex& mutex() { return mutex_; }

  // The calling thread is rank `local` from here on, and has its turn.
  void Begin(int64_t local);
  // It is no more, or never will be.
  void End(int64_t local, const absl::Status& status);

  // Waits until `is_done`, which is called with the mutex held, as `lock` holds it. A thread that has the turn gives it
  // to another one meanwhile.
  void Wait(int64_t local, std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> is_done);
  // The same while `work` runs, without the mutex: it waits for other processes.
  void Work(int64_t local, std::unique_lock<std::mutex>& lock, absl::FunctionRef<void()> work);
  void NotifyAll() { changed_.notify_all(); }

  // With the mutex held.
  bool has_ended(int64_t local) const { return has_ended_[local]; }
  // The first error of a rank that has ended, once all have.
  const absl::Status& first_error() const { return first_error_; }

 private:
  bool IsMine() const { return holder_ == std::this_thread::get_id(); }
  void Take(int64_t local, std::unique_lock<std::mutex>& lock);
  void Give(int64_t local);

  std::mutex mutex_;  // of all that follows, and of the meetings
  std::condition_variable changed_;
  std::thread::id holder_;  // no thread's when the turn is free
  std::vector<bool> has_ended_;
  std::vector<at::Tensor> generators_;  // by rank, while it has no turn
  absl::Status first_error_;
};

// The exchange of those ranks of this process that share a communicator. In each round every one of them deposits a
// tensor; the last does what is to be done with the other processes, for all. Thread-safe.
class Meeting {
 public:
  using Deposits = std::vector<at::Tensor>;
  using Conclusion = std::function<absl::StatusOr<at::Tensor>(const Deposits&)>;

  // locals: the ranks of this process that take part, ascending. members: how many do of each process.
  Meeting(Turns& turns, std::vector<int64_t> locals, std::vector<int64_t> members,
          std::unique_ptr<Communicator> processes);

  Turns& turns() { return turns_; }
  Communicator& processes() { return *processes_; }
  const std::vector<int64_t>& locals() const { return locals_; }
  const std::vector<int64_t>& members() const { return members_; }
  // Of all processes, and of the first rank of this one.
  int64_t size() const { return size_; }
  int64_t first_rank() const { return first_rank_; }

  // `place`: which of locals() it is that deposits. Does not wait for ranks of this process. Returns the round's
  // number.
  int64_t Deposit(int64_t place, const std::string& operation, at::Tensor tensor, const Conclusion& conclude);

  // What the round's conclusion has returned, the same tensor for all; LibTorch's exceptions are errors. Internal when
  // ranks of this process were in different operations, Unavailable when one has ended, or left, without its deposit.
  absl::StatusOr<at::Tensor> Collect(int64_t place, int64_t number);

  // `place` takes part in no further round: Collect returns `why` to it. Those of this process that wait for it learn
  // of it now, and so do the other processes: none of them gets a result any more. Waits for the round that this
  // process has under way with them, as long as an operation may take; meanwhile its other ranks go on.
  void Leave(int64_t place, const absl::Status& why);

  // Runs `wait` without the turn.
  void LetOthersGoOn(int64_t place, absl::FunctionRef<void()> wait);

  // A meeting that a conclusion makes for all.
  void AddChild(int64_t number, int64_t color, std::shared_ptr<Meeting> child);
  std::shared_ptr<Meeting> Child(int64_t number, int64_t color);

 private:
  struct Round {
    std::string operation;
    std::string mismatch;  // another operation, of a later rank
    Deposits deposits;
    std::vector<bool> has_deposited;
    std::vector<bool> has_collected;
    int64_t arrived = 0;
    bool is_complete = false;
    absl::Status status;
    at::Tensor result;
  };

  // Runs `use`, of processes_, without the turn and the mutex, and no other one meanwhile.
  void UseProcesses(int64_t place, std::unique_lock<std::mutex>& lock, absl::FunctionRef<void()> use);
  static absl::Status Conclude(const Round& round, const Conclusion& conclude, at::Tensor* result);
  absl::StatusOr<at::Tensor> ResultOf(int64_t place, const Round& round, std::unique_lock<std::mutex>& lock);
  bool IsGone(size_t place) const { return turns_.has_ended(locals_[place]) || !left_[place].ok(); }
  // Whether no rank of this process will ask for it any more: one that has deposited does.
  bool IsForgotten(const Round& round) const;
  // The place of a rank of this process that will not come any more; -1 for none.
  int64_t GoneWithoutDeposit(const Round& round) const;
  absl::Status Gone(const std::string& operation, int64_t place) const;

  Turns& turns_;
  const std::vector<int64_t> locals_;
  const std::vector<int64_t> members_;
  const std::unique_ptr<Communicator> processes_;
  const int64_t size_;
  const int64_t first_rank_;
  std::vector<int64_t> next_;                                                 // the round of each rank's next operation
  std::vector<absl::Status> left_;                                            // by place, why; OK for one that is here
  bool is_in_use_ = false;                                                    // processes_, by some thread
  std::map<int64_t, Round> rounds_;                                           // for which some rank is still to come
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<Meeting>> children_;  // by number and color
};

}  // namespace ssl

#endif  // SSL_DISTRIBUTED_VIRTUAL_MEETING_H_
