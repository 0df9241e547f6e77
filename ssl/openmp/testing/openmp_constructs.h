// SPDX-License-Identifier: Apache-2.0
//
// Each construct of OpenMP that LibTorch uses, in a function that returns what it computed.
#ifndef SSL_OPENMP_TESTING_OPENMP_CONSTRUCTS_H_
#define SSL_OPENMP_TESTING_OPENMP_CONSTRUCTS_H_

#include <vector>

namespace ssl {

// The numbers of the shares that ran, in ascending order.
std::vector<int> NumbersOfShares(int threads);
// The sum of 0 to count - 1, by a loop with dynamic schedule whose parts are of 3 iterations.
long SumByDynamicLoop(int threads, long count);
// count to 1, by the ordered block of a loop that counts down.
std::vector<int> CountDownInOrder(int threads, int count);
// How often a single block ran, in a region that comes to it `times` times.
int RunsOfSingleBlock(int threads, int times);
// How often each of three sections ran.
std::vector<int> RunsOfSections(int threads);
// What all shares together added to a number, each `times` times, in two critical sections that lie in one another.
long CountInCriticalSections(int threads, int times);
// The shares that each share saw behind a barrier, which all had passed: as many as there are, for each.
std::vector<int> SharesSeenBehindBarrier(int threads);
// Of a region within a region: the shares of the inner one, and whether it was told to be in parallel.
struct Nested {
  int inner_shares = 0;
  bool in_parallel = false;
};
Nested RegionInRegion(int threads);
// A dynamic loop and a single block outside of any region, `times` times; how many iterations and blocks ran.
int RunsOutsideOfRegions(int times);
// omp_get_max_threads() after omp_set_num_threads(threads) on a thread of its own, and then on the caller's.
std::vector<int> MostThreadsAfterSetting(int threads);

}  // namespace ssl

#endif  // SSL_OPENMP_TESTING_OPENMP_CONSTRUCTS_H_
