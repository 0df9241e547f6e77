// SPDX-License-Identifier: Apache-2.0
//
// The threads of one caller. They and the caller take the shares of a region one by one: whoever is free takes the
// next, so that a thread that the system has not scheduled holds up nobody. A share that has begun stays with its
// thread.
//
// Shares may wait for one another (Region::Barrier, spinning on memory): a team has a thread for each share of the
// largest region, and a thread that waits in a share holds one, so that the shares left have as many threads.
#ifndef SSL_OPENMP_TEAM_H_
#define SSL_OPENMP_TEAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "ssl/openmp/region.h"
#include "ssl/openmp/waiting.h"

namespace ssl {

// One caller's, who is not in a share of it. Not thread-safe.
class Team {
 public:
  static constexpr uint32_t kMostShares = 0xffff;

  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  // Calls body(data) for the shares 0 to shares - 1 and returns when all have ended. Throws std::system_error before
  // the first when a thread cannot be started.
  void Run(Region::Body body, void* data, uint32_t shares);

 private:
  void Work();
  bool TakeShare(uint32_t* number);
  bool HasShare() const;

  Patience patience_;
  Region region_{&patience_};
  std::vector<std::thread> workers_;
  uint32_t generation_ = 0;
  // Which share is next: the number of the region, of its shares, and of the next share, in one word, so that a thread
  // that was late cannot take a share of another region.
  alignas(64) std::atomic<uint64_t> next_{0};
  alignas(64) std::atomic<uint32_t> unfinished_{0};  // shares
  std::atomic<bool> caller_sleeps_{false};
  alignas(64) std::atomic<uint32_t> calls_{0};  // what workers sleep on
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace ssl

#endif  // SSL_OPENMP_TEAM_H_
