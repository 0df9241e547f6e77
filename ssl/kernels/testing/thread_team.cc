// SPDX-License-Identifier: Apache-2.0
#include "ssl/kernels/testing/thread_team.h"

#include <memory>
#include <thread>

namespace ssl {

void Meeting::Wait() {
  const absl::MutexLock lock(&mutex_);
  const int round = rounds_;
  if (++arrived_ == count_) {
    arrived_ = 0;
    ++rounds_;
    return;
  }
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return rounds_ != round; };
  mutex_.Await(absl::Condition(&is_over));
}

ThreadTeam::Shared::Shared(int size) : meeting(size), values(size) {
  constexpr int kLanes = 4;
  const int lanes = size % kLanes == 0 ? kLanes : 1;
  for (int group = 0; group < size / lanes; ++group) of_lanes.push_back(std::make_unique<Meeting>(lanes));
}

void RunTeams(int teams, int threads, const std::function<void(const ThreadTeam&, const ThreadTeams&)>& work) {
  Meeting everybody(teams * threads);
  std::vector<std::unique_ptr<ThreadTeam::Shared>> shared;
  std::vector<std::thread> running;
  for (int team = 0; team < teams; ++team) {
    shared.push_back(std::make_unique<ThreadTeam::Shared>(threads));
    for (int thread = 0; thread < threads; ++thread) {
      const ThreadTeam of_thread(thread, shared.back().get());
      const ThreadTeams of_team(team, teams, &everybody);
      running.emplace_back([&work, of_thread, of_team] { work(of_thread, of_team); });
    }
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace ssl
