// SPDX-License-Identifier: Apache-2.0
#include "ssl/openmp/testing/openmp_constructs.h"

#include <omp.h>

#include <algorithm>
#include <array>
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

Levels RegionsInOneAnother(std::array<int, 3> threads, int times) {
  std::array<std::atomic<int>, 3> runs = {};
  std::array<std::atomic<int>, 3> in_parallel = {};
  const auto enter = [&](size_t level) {
    ++runs[level];
    in_parallel[level] += omp_in_parallel();
  };
  for (int i = 0; i < times; ++i) {
#pragma omp parallel num_threads(threads[0])
    {
      enter(0);
#pragma omp parallel num_threads(threads[1]) if (threads[1] != 1)
      {
        enter(1);
#pragma omp parallel num_threads(threads[2])
        enter(2);
      }
    }
  }
  return {{runs.begin(), runs.end()}, {in_parallel.begin(), in_parallel.end()}};
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

std::vector<int> MostThreadsInShares(int threads) {
  const auto shares = static_cast<size_t>(threads);
  std::vector<int> most(2 * shares + 1);
  std::thread([&] {
    omp_set_num_threads(threads);
#pragma omp parallel
    {
      const auto share = static_cast<size_t>(omp_get_thread_num());
      most[share] = omp_get_max_threads();
#pragma omp barrier
      omp_set_num_threads(10 + omp_get_thread_num());
#pragma omp barrier
      most[shares + share] = omp_get_max_threads();
    }
    most.back() = omp_get_max_threads();
  }).join();
  return most;
}

}  // namespace ssl
