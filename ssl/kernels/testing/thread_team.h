// SPDX-License-Identifier: Apache-2.0
//
// Teams of host threads (team.h), so that a test on the host runs what a kernel runs, with threads that wait for each
// other.
//
//   RunTeams(2, 3, [&](const ThreadTeam& team, const ThreadTeams& teams) { Balance(team, teams, problem); });
#ifndef SSL_KERNELS_TESTING_THREAD_TEAM_H_
#define SSL_KERNELS_TESTING_THREAD_TEAM_H_

#include <functional>
#include <memory>
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
    explicit Shared(int size);
    Meeting meeting;
    std::vector<double> values;
    std::vector<std::unique_ptr<Meeting>> of_lanes;  // that go side by side
  };
  ThreadTeam(int index, Shared* shared) : index_(index), shared_(shared) {}

  int index() const { return index_; }
  int size() const { return static_cast<int>(shared_->values.size()); }
  void Wait() const { shared_->meeting.Wait(); }
  // In fours, where that leaves nobody over.
  int lane() const { return index_ % lanes(); }
  int lanes() const { return size() / static_cast<int>(shared_->of_lanes.size()); }
  template <typename T>
  T LaneSum(T value) const {
    const int group = index_ / lanes();
    return Reduce(group * lanes(), lanes(), shared_->of_lanes[group].get(), value, [](T a, T b) { return a + b; });
  }
  template <typename T>
  T Sum(T value) const {
    return Reduce(0, size(), &shared_->meeting, value, [](T a, T b) { return a + b; });
  }
  template <typename T>
  T Max(T value) const {
    return Reduce(0, size(), &shared_->meeting, value, [](T a, T b) { return a < b ? b : a; });
  }

 private:
  // Of the threads from `first` on. A double holds floats and the sums of tests exactly.
  template <typename T, typename Combine>
  T Reduce(int first, int count, Meeting* meeting, T value, Combine combine) const {
    shared_->values[index_] = static_cast<double>(value);
    meeting->Wait();
    T result = static_cast<T>(shared_->values[first]);
    for (int i = 1; i < count; ++i) result = combine(result, static_cast<T>(shared_->values[first + i]));
    meeting->Wait();
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
