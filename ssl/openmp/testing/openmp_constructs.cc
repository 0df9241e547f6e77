// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/testing/openmp_constructs.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace ssl {

std::vector<int> NumbersOfShares(int threads) {
  std::vector<int> numbers;
#pragma omp parallel num_threads(threads)
#pragma omp critical
  numbers.push_back(omp_get_thread_num());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

long SumByDynamicLoop(int threads, long count) {
  std::atomic<long> sum{0};
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(monotonic : dynamic, 3)
    for (long i = 0; i < count; ++i) sum += i;
  }
  return sum;
}

std::vector<int> CountDownInOrder(int threads, int count) {
  std::vector<int> order;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for ordered schedule(monotonic : dynamic, 2)
    for (int i = count; i > 0; --i) {
#pragma omp ordered
      order.push_back(i);
    }
  }
  return order;
}

int RunsOfSingleBlock(int threads, int times) {
  int runs = 0;
#pragma omp parallel num_threads(threads)
  for (int i = 0; i < times; ++i) {
#pragma omp single
    ++runs;
  }
  return runs;
}

// The region has more than its sections, or the compiler would join the two to a function that LibTorch does not use.
std::vector<int> RunsOfSections(int threads) {
  std::vector<int> runs(3);
  std::atomic<int> shares{0};
#pragma omp parallel num_threads(threads)
  {
    ++shares;
#pragma omp sections nowait
    {
#pragma omp section
      ++runs[0];
#pragma omp section
      ++runs[1];
#pragma omp section
      ++runs[2];
    }
  }
  return runs;
}

long CountInCriticalSections(int threads, int times) {
  long count = 0;
#pragma omp parallel num_threads(threads)
  for (int i = 0; i < times; ++i) {
#pragma omp critical(outer)
    {
#pragma omp critical(inner)
      ++count;
    }
  }
  return count;
}

std::vector<int> SharesSeenBehindBarrier(int threads) {
  std::atomic<int> arrived{0};
  std::vector<int> seen(static_cast<size_t>(threads));
#pragma omp parallel num_threads(threads)
  {
    ++arrived;
#pragma omp barrier
    seen[static_cast<size_t>(omp_get_thread_num())] = arrived;
  }
  return seen;
}

Nested RegionInRegion(int threads) {
  std::atomic<int> inner_shares{0};
  std::atomic<int> in_parallel{0};
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(threads)
      {
        ++inner_shares;
        in_parallel = omp_in_parallel();
      }
    }
  }
  return {inner_shares, in_parallel != 0};
}

int RunsOutsideOfRegions(int times) {
  int runs = 0;
  for (int i = 0; i < times; ++i) {
#pragma omp for schedule(monotonic : dynamic, 1)
    for (int j = 0; j < 2; ++j) ++runs;
#pragma omp single
    ++runs;
  }
  return runs;
}

std::vector<int> MostThreadsAfterSetting(int threads) {
  const int before = omp_get_max_threads();
  int there = 0;
  std::thread([&] {
    omp_set_num_threads(threads);
    there = omp_get_max_threads();
  }).join();
  return {there, omp_get_max_threads() - before};
}

}  // namespace ssl
