// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/region.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ssl {
namespace {

constexpr int64_t kNoPart = -1;

// The share that a thread runs.
struct Share {
  Region* region = nullptr;
  uint32_t number = 0;
  int threads = 0;
  size_t work = 0;         // how many pieces of work it has left behind
  int64_t part = kNoPart;  // of the piece of work that it is at
};

thread_local Share current;

}  // namespace

void Region::Begin(Body body, void* data, uint32_t shares) {
  body_ = body;
  data_ = data;
  shares_ = shares;
  in_parallel_ = shares > 1 || InParallel();
  threads_ = current.threads;
  works_.clear();
}

void Region::RunShare(uint32_t number) {
  const Share outer = current;
  current = {this, number, threads_, 0, kNoPart};
  body_(data_);
  current = outer;
}

Region* Region::Current() { return current.region; }
uint32_t Region::CurrentShare() { return current.number; }
bool Region::InParallel() { return current.region != nullptr && current.region->in_parallel_; }
int Region::Threads() { return current.threads; }
void Region::SetThreads(int threads) { current.threads = threads; }

void Region::Barrier() {
  if (shares_ == 1) return;
  const uint32_t phase = phase_.load();
  if (arrived_.fetch_add(1) + 1 < shares_) {
    AwaitWord(&phase_, phase + 1, &sleepers_);
    return;
  }
  arrived_.store(0);
  phase_.fetch_add(1);
  if (sleepers_.load() > 0) WakeSleepers(&phase_, INT_MAX);
}

// A sleeper is counted before the kernel compares the word, and who changes the word looks for sleepers afterwards.
void Region::AwaitWord(std::atomic<uint32_t>* word, uint32_t wanted, std::atomic<uint32_t>* sleepers) {
  if (patience_.SpinUntil([&] { return word->load() == wanted; })) return;
  sleepers->fetch_add(1);
  for (uint32_t value; (value = word->load()) != wanted;) SleepWhile(word, value);
  sleepers->fetch_sub(1);
}

Region::Work& Region::CurrentWork() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return *works_[current.work];
}

bool Region::BeginWork(const Loop& loop) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_first = works_.size() == current.work;
  if (is_first) {
    works_.push_back(std::make_unique<Work>());
    works_.back()->loop = loop;
    works_.back()->next = loop.begin;
  }
  return is_first;
}

bool Region::TakePart(LoopPart* part) {
  Work& work = CurrentWork();
  PassTurn(&work);
  const std::lock_guard<std::mutex> lock(mutex_);
  const Loop& loop = work.loop;
  if (loop.step > 0 ? work.next >= loop.end : work.next <= loop.end) return false;
  const int64_t past = work.next + loop.step * loop.chunk;
  *part = {work.next, loop.step > 0 ? std::min(past, loop.end) : std::max(past, loop.end)};
  work.next = part->end;
  current.part = work.parts++;
  return true;
}

void Region::EndWork() {
  PassTurn(&CurrentWork());
  ++current.work;
  if (shares_ > 1) return;
  // Nobody else comes to this work, and a loop outside of parallel regions has no end at which it could be forgotten.
  works_.clear();
  current.work = 0;
}

void Region::AwaitTurn() { AwaitTurn(&CurrentWork()); }

void Region::AwaitTurn(Work* work) {
  const auto part = static_cast<uint32_t>(current.part);
  if (work->turn.load() != part) AwaitWord(&work->turn, part, &work->sleepers);
}

void Region::PassTurn(Work* work) {
  if (work->loop.ordered && current.part != kNoPart) {
    AwaitTurn(work);
    work->turn.fetch_add(1);
    if (work->sleepers.load() > 0) WakeSleepers(&work->turn, INT_MAX);
  }
  current.part = kNoPart;
}

}  // namespace ssl
