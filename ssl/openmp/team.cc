// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/team.h"

#include <atomic>
#include <climits>
#include <cstdint>
#include <thread>

namespace ssl {
namespace {

uint32_t NextShare(uint64_t next) { return next & 0xffff; }
uint32_t Shares(uint64_t next) { return next >> 16 & 0xffff; }

}  // namespace

Team::~Team() {
  stop_.store(true);
  calls_.fetch_add(1);
  WakeSleepers(&calls_, INT_MAX);
  for (std::thread& worker : workers_) worker.join();
}

void Team::Run(Region::Body body, void* data, uint32_t shares) {
  while (workers_.size() + 1 < shares) workers_.emplace_back([this] { Work(); });
  region_.Begin(body, data, shares);
  unfinished_.store(shares);
  next_.store(uint64_t{++generation_} << 32 | uint64_t{shares} << 16 | 1);
  if (sleepers_.load() > 0) {
    calls_.fetch_add(1);
    WakeSleepers(&calls_, shares - 1);
  }
  uint32_t number = 0;
  do {
    region_.RunShare(number);
    unfinished_.fetch_sub(1);
  } while (TakeShare(&number));
  if (patience_.SpinUntil([this] { return unfinished_.load() == 0; })) return;
  caller_sleeps_.store(true);
  for (uint32_t left; (left = unfinished_.load()) != 0;) SleepWhile(&unfinished_, left);
  caller_sleeps_.store(false);
}

bool Team::HasShare() const {
  const uint64_t next = next_.load();
  return NextShare(next) < Shares(next);
}

bool Team::TakeShare(uint32_t* number) {
  uint64_t next = next_.load();
  do {
    if (NextShare(next) >= Shares(next)) return false;
  } while (!next_.compare_exchange_weak(next, next + 1));
  *number = NextShare(next);
  return true;
}

// A sleeper is counted before it looks for a share once more, and the caller looks for sleepers after it has shown one.
void Team::Work() {
  const auto is_called = [this] { return HasShare() || stop_.load(); };
  while (!stop_.load()) {
    uint32_t number;
    if (TakeShare(&number)) {
      region_.RunShare(number);
      if (unfinished_.fetch_sub(1) == 1 && caller_sleeps_.load()) WakeSleepers(&unfinished_, 1);
    } else if (!patience_.SpinUntil(is_called)) {
      sleepers_.fetch_add(1);
      const uint32_t calls = calls_.load();
      if (!is_called()) SleepWhile(&calls_, calls);
      sleepers_.fetch_sub(1);
    }
  }
}

}  // namespace ssl
