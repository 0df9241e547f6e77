// SPDX-License-Identifier: Apache-2.0
//
// F4: 2,000 states that a power loss may leave, each drawn from a seed: a few saves, the loss at any file call, and of
// what was not synced any part, in any order, damaged or not. What is found then is the last save that was
// acknowledged, or the one that was in progress.
#include <iostream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"
#include "tests/reliability/store/store_run.h"

namespace ssl {
namespace {

constexpr int kStates = 2000;
constexpr int kMostCalls = 160;  // more than three saves make
constexpr int64_t kSaves = 3;

TEST(StorePowerLossTest, WhatWasAcknowledgedIsFound) {
  const uint64_t seed = HarnessSeed(20260401);
  const HarnessDirectory harness;
  const std::string& root = harness.path();
  int in_progress_found = 0;
  for (int number = 0; number < kStates; ++number) {
    std::mt19937_64 random(seed + number);
    ASSERT_OK(PosixFileSystem().RemoveAll(root));
    ASSERT_OK(PosixFileSystem().CreateDirectories(root));
    const std::string directory = root + "/run";
    FaultFileSystem faulty(PosixFileSystem(), root);
    faulty.CrashAtCall(1 + static_cast<int>(random() % kMostCalls));
    int64_t acknowledged = 0;
    for (int64_t save = 1; save <= kSaves && acknowledged == save - 1; ++save) {
      if (StoreRun(directory, faulty).GoTo(save).ok()) acknowledged = save;
    }
    ASSERT_OK(faulty.MixUnsynced(random));

    StoreRun run(directory, PosixFileSystem());
    const absl::Status found = run.Look();
    const std::string where = absl::StrCat("seed ", seed + number, ": ", found.ToString());
    ASSERT_TRUE(found.ok()) << where;
    ASSERT_TRUE(run.IsWhole()) << where;
    ASSERT_GE(run.iteration(), acknowledged) << where;
    ASSERT_LE(run.iteration(), acknowledged + 1) << where;
    in_progress_found += run.iteration() > acknowledged ? 1 : 0;
  }
  std::cout << "F4: " << kStates << " states recovered, " << in_progress_found
            << " of them with the save in progress\n";
}

}  // namespace
}  // namespace ssl
