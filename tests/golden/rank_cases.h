// SPDX-License-Identifier: Apache-2.0
//
// The reference numbers of several ranks (category "dist"): what rank k is given and what it must get are named
// rank<k>.<name>.
//
//   void CheckRank(const golden::Case& golden_case, const std::string& prefix, Communicator& communicator);
//
//   TEST(SinkhornGolden, AssignmentsOfSeveralRanksAreVissls) { golden::RunAsThreads({{"sinkhorn", &CheckRank}}); }
//   TEST(SinkhornGolden, AssignmentsOfTwoProcessesAreVissls) { golden::RunAsProcesses({{"sinkhorn", &CheckRank}}); }
#ifndef SSL_TESTS_GOLDEN_RANK_CASES_H_
#define SSL_TESTS_GOLDEN_RANK_CASES_H_

#include <functional>
#include <map>
#include <string>

#include "ssl/distributed/communicator.h"
#include "tests/golden/golden.h"

namespace ssl::golden {

// Checks what one rank gets; `prefix` is its "rank<k>.".
using RankCheck = std::function<void(const Case&, const std::string& prefix, Communicator&)>;

// Every case of these ops, with as many threads as it has ranks.
void RunAsThreads(const std::map<std::string, RankCheck>& checks);

// Every case of two ranks, each a process, connected by Gloo. A test calls this once.
void RunAsProcesses(const std::map<std::string, RankCheck>& checks);

}  // namespace ssl::golden

#endif  // SSL_TESTS_GOLDEN_RANK_CASES_H_
