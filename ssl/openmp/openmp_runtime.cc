// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/openmp_runtime.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ssl/openmp/region.h"
#include "ssl/openmp/team.h"
#include "ssl/openmp/waiting.h"

namespace ssl {
namespace {

// The state of an OpenMP runtime is one for the process, as libgomp's is.
std::atomic<uint32_t> unnamed_section{0};
std::atomic<uint32_t> atomic_section{0};

thread_local int threads_of_thread = 0;  // omp_set_num_threads; 0: as many as the process begins with
thread_local std::unique_ptr<Team> team;

int OpenCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

int ThreadsOfProcess() {
  static const int threads = [] {
    const char* const text = std::getenv("OMP_NUM_THREADS");
    const int given = text == nullptr ? 0 : std::atoi(text);
    return given > 0 ? given : OpenCores();
  }();
  return threads;
}

int MostThreads() { return threads_of_thread > 0 ? threads_of_thread : ThreadsOfProcess(); }

Patience& AnyPatience() {
  static Patience patience;
  return patience;
}

// Of a thread outside of parallel regions: one share, which has no end.
Region& CurrentRegion() {
  Region* const region = Region::Current();
  if (region != nullptr) return *region;
  thread_local Region alone(&AnyPatience());
  return alone;
}

uint32_t SharesHere() { return Region::Current() == nullptr ? 1 : Region::Current()->shares(); }

bool TakePart(long* begin, long* end) {
  LoopPart part;
  if (!CurrentRegion().TakePart(&part)) return false;
  *begin = part.begin;
  *end = part.end;
  return true;
}

bool BeginLoop(const Loop& loop, long* begin, long* end) {
  CurrentRegion().BeginWork(loop);
  return TakePart(begin, end);
}

// The lock of a critical section. 0: free, 1: taken, 2: taken, and somebody sleeps.
void Enter(std::atomic<uint32_t>* section) {
  uint32_t free = 0;
  if (section->compare_exchange_strong(free, 1)) return;
  while (section->exchange(2) != 0) SleepWhile(section, 2);
}

void Leave(std::atomic<uint32_t>* section) {
  if (section->exchange(0) == 2) WakeSleepers(section, 1);
}

// OpenMP has a pointer for each name, null at first, for a runtime to use as it likes.
std::atomic<uint32_t>* NamedSection(void** name) { return reinterpret_cast<std::atomic<uint32_t>*>(name); }

}  // namespace

// The linker takes this file into a program for it, and all of the functions below.
void UseOwnOpenMp() {}

}  // namespace ssl

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/) noexcept {
  uint32_t shares = threads > 0 ? threads : static_cast<unsigned>(ssl::MostThreads());
  shares = std::min(shares, ssl::Team::kMostShares);
  if (shares == 1 || ssl::SharesHere() > 1) {
    ssl::Region region(&ssl::AnyPatience());
    region.Begin(body, data, 1);
    region.RunShare(0);
    return;
  }
  if (ssl::team == nullptr) ssl::team = std::make_unique<ssl::Team>();
  ssl::team->Run(body, data, shares);
}

void GOMP_barrier() { ssl::CurrentRegion().Barrier(); }

void GOMP_critical_start() { ssl::Enter(&ssl::unnamed_section); }
void GOMP_critical_end() { ssl::Leave(&ssl::unnamed_section); }
void GOMP_critical_name_start(void** name) { ssl::Enter(ssl::NamedSection(name)); }
void GOMP_critical_name_end(void** name) { ssl::Leave(ssl::NamedSection(name)); }
void GOMP_atomic_start() { ssl::Enter(&ssl::atomic_section); }
void GOMP_atomic_end() { ssl::Leave(&ssl::atomic_section); }

bool GOMP_single_start() {
  ssl::Region& region = ssl::CurrentRegion();
  const bool is_first = region.BeginWork({});
  region.EndWork();
  return is_first;
}

bool GOMP_loop_dynamic_start(long begin, long end, long step, long chunk, long* part_begin, long* part_end) {
  return ssl::BeginLoop({begin, end, step, chunk, /*ordered=*/false}, part_begin, part_end);
}
bool GOMP_loop_dynamic_next(long* part_begin, long* part_end) { return ssl::TakePart(part_begin, part_end); }
bool GOMP_loop_ordered_dynamic_start(long begin, long end, long step, long chunk, long* part_begin, long* part_end) {
  return ssl::BeginLoop({begin, end, step, chunk, /*ordered=*/true}, part_begin, part_end);
}
bool GOMP_loop_ordered_dynamic_next(long* part_begin, long* part_end) { return ssl::TakePart(part_begin, part_end); }
void GOMP_loop_end_nowait() { ssl::CurrentRegion().EndWork(); }
void GOMP_loop_end() {
  ssl::CurrentRegion().EndWork();
  ssl::CurrentRegion().Barrier();
}
void GOMP_ordered_start() { ssl::CurrentRegion().AwaitTurn(); }
void GOMP_ordered_end() {}

// Sections are a loop over their numbers, which begin at 1; 0 means that none is left.
unsigned GOMP_sections_next() {
  long section = 0;
  long end = 0;
  return ssl::TakePart(&section, &end) ? static_cast<unsigned>(section) : 0;
}
unsigned GOMP_sections_start(unsigned count) {
  ssl::CurrentRegion().BeginWork({/*begin=*/1, /*end=*/int64_t{count} + 1});
  return GOMP_sections_next();
}
void GOMP_sections_end_nowait() { ssl::CurrentRegion().EndWork(); }

int omp_get_max_threads() { return ssl::MostThreads(); }
int omp_get_num_procs() { return ssl::OpenCores(); }
int omp_get_num_threads() { return static_cast<int>(ssl::SharesHere()); }
int omp_get_thread_num() { return static_cast<int>(ssl::Region::CurrentShare()); }
int omp_in_parallel() { return ssl::SharesHere() > 1 ? 1 : 0; }
void omp_set_num_threads(int threads) { ssl::threads_of_thread = std::max(1, threads); }

}  // extern "C"
