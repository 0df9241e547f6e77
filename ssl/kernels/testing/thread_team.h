// SPDX-License-Identifier: Apache-2.0
//
// Teams of host threads (team.h), so that a test on the host runs what a kernel runs, with threads that wait for each
// other.
//
//   RunTeams(2, 3, [&](const ThreadTeam& team, const ThreadTeams& teams) { Balance(team, teams, problem); });
#ifndef SSL_KERNELS_TESTING_THREAD_TEAM_H_
#define SSL_KERNELS_TESTING_THREAD_TEAM_H_

#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace ssl {

// Holds `count` threads until all are there, again and again.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  void Wait();

 private:
  const int count_;
  absl::Mutex mutex_;
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int rounds_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One thread's end of its team.
class ThreadTeam {
 public:
  struct Shared {
    explicit Shared(int size) : meeting(size), values(size) {}
    Meeting meeting;
    std::vector<double> values;
  };
  ThreadTeam(int index, Shared* shared) : index_(index), shared_(shared) {}

  int index() const { return index_; }
  int size() const { return static_cast<int>(shared_->values.size()); }
  void Wait() const { shared_->meeting.Wait(); }
  // A thread of the host goes alone.
  int lane() const { return 0; }
  int lanes() const { return 1; }
  template <typename T>
  T LaneSum(T value) const {
    return value;
  }
  template <typename T>
  T Sum(T value) const {
    return Reduce(value, [](T a, T b) { return a + b; });
  }
  template <typename T>
  T Max(T value) const {
    return Reduce(value, [](T a, T b) { return a < b ? b : a; });
  }

 private:
  // A double holds floats and the sums of tests exactly.
  template <typename T, typename Combine>
  T Reduce(T value, Combine combine) const {
    shared_->values[index_] = static_cast<double>(value);
    Wait();
    T result = static_cast<T>(shared_->values[0]);
    for (int i = 1; i < size(); ++i) result = combine(result, static_cast<T>(shared_->values[i]));
    Wait();
    return result;
  }

  int index_;
  Shared* shared_;
};

// One team's place among all teams.
class ThreadTeams {
 public:
  ThreadTeams(int index, int size, Meeting* meeting) : index_(index), size_(size), meeting_(meeting) {}

  int index() const { return index_; }
  int size() const { return size_; }
  void Wait() const { meeting_->Wait(); }

 private:
  int index_;
  int size_;
  Meeting* meeting_;
};

// Runs `work` in teams * threads threads, and returns when all have ended.
void RunTeams(int teams, int threads, const std::function<void(const ThreadTeam&, const ThreadTeams&)>& work);

}  // namespace ssl

#endif  // SSL_KERNELS_TESTING_THREAD_TEAM_H_
