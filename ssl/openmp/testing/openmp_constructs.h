// SPDX-License-Identifier: Apache-2.0
//
// Each construct of OpenMP that LibTorch uses, in a function that returns what it computed.
#ifndef SSL_OPENMP_TESTING_OPENMP_CONSTRUCTS_H_
#define SSL_OPENMP_TESTING_OPENMP_CONSTRUCTS_H_

#include <array>
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
// How often the bodies of three regions in one another ran, the outermost first, and how many of these runs were told
// to be in parallel. Each region has its number of threads; the second has if(false) where that is 1.
struct Levels {
  std::vector<int> runs;
  std::vector<int> in_parallel;
};
Levels RegionsInOneAnother(std::array<int, 3> threads, int times);
// A dynamic loop and a single block outside of any region, `times` times; how many iterations and blocks ran.
int RunsOutsideOfRegions(int times);
// omp_get_max_threads() after omp_set_num_threads(threads) on a thread of its own, and then on the caller's.
std::vector<int> MostThreadsAfterSetting(int threads);
// omp_get_max_threads() of a caller that has set it to `threads`: in each share, in each after it has set 10 and its
// number there, and behind the region.
std::vector<int> MostThreadsInShares(int threads);

}  // namespace ssl

#endif  // SSL_OPENMP_TESTING_OPENMP_CONSTRUCTS_H_
