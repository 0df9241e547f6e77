// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/openmp_runtime.h"

#include <sched.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "ssl/openmp/region.h"
#include "ssl/openmp/team.h"
#include "ssl/openmp/waiting.h"

namespace ssl {
namespace {

// The state of an OpenMP runtime is one for the process, as libgomp's is.
std::atomic<uint32_t> unnamed_section{0};
std::atomic<uint32_t> atomic_section{0};

thread_local std::unique_ptr<Team> team;

int OpenCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

// What a variable says: a number from 1, or the first of a list of them. 0 for anything else.
int NumberOf(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return 0;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  // strchr finds the end of the text, too.
  return std::strchr(", ", *end) == nullptr ? 0 : static_cast<int>(std::clamp(number, 0L, long{INT_MAX}));
}

int ThreadsOfProcess() {
  static const int given = NumberOf("OMP_NUM_THREADS");
  static const int threads = given > 0 ? given : OpenCores();
  return threads;
}

uint32_t MostShares() {
  static const auto limit = static_cast<uint32_t>(NumberOf("OMP_THREAD_LIMIT"));
  return limit > 0 ? std::min(limit, Team::kMostShares) : Team::kMostShares;
}

int MostThreads() { return Region::Threads() > 0 ? Region::Threads() : ThreadsOfProcess(); }

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

std::string IgnoredOpenMpVariables() {
  std::string names;
  for (const char* const name :
       {"GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "GOMP_STACKSIZE", "OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS", "OMP_NESTED",
        "OMP_PLACES", "OMP_PROC_BIND", "OMP_STACKSIZE"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0' || strcasecmp(text, "false") == 0) continue;
    names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

}  // namespace ssl

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/) noexcept {
  uint32_t shares = threads > 0 ? threads : static_cast<unsigned>(ssl::MostThreads());
  shares = std::min(shares, ssl::MostShares());
  if (shares == 1 || ssl::Region::InParallel()) {  // this thread may be at a share of its team
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
int omp_in_parallel() { return ssl::Region::InParallel() ? 1 : 0; }
void omp_set_num_threads(int threads) { ssl::Region::SetThreads(std::max(1, threads)); }

}  // extern "C"
