// SPDX-License-Identifier: Apache-2.0
//
// Ranks that share out the parameters train on a device as on the CPU; the device is the stand-in of the tests
// (docs/devices.md), and the ranks are threads.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ssl/methods/testing/sharded_run.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

constexpr char kDevice[] = "{MACHINE: {DEVICE: gpu}, OPTIMIZER: {construct_single_param_group_only: True}}";

// The trunk has kernels of its own on the CPU, and training magnifies rounding.
std::string Slow(const std::string& method) {
  return absl::StrReplaceAll(method, {{"start_value: 0.01", "start_value: 0.00003"}});
}

void ExpectClose(const std::vector<Losses>& found, const std::vector<Losses>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(found[rank].size(), expected[rank].size());
    for (size_t step = 0; step < expected[rank].size(); ++step) {
      EXPECT_NEAR(found[rank][step], expected[rank][step], 1e-4 * expected[rank][step])
          << "rank " << rank << ", step " << step;
    }
  }
}

void CheckShards(const std::string& method) {
  StandinDevice::Install();
  const std::vector<Losses> expected = TrainedOn({2, Slow(method), kSharded, ""});
  ASSERT_EQ(expected[0].size(), static_cast<size_t>(kSteps));
  ExpectClose(TrainedOn({2, Slow(method), kDevice, ""}), expected);
}

TEST(StandinShards, Swav_HasTheLossesOfTheCpu) { CheckShards(kSwav); }

TEST(StandinShards, Supervised_HasTheLossesOfTheCpu) { CheckShards(kSupervised); }

TEST(StandinShards, CheckpointOfTheDevice_GoesOnOnTheCpu) {
  StandinDevice::Install();
  const std::string directory = MakeTempDir("standin_shards");
  const std::vector<Losses> expected = TrainedOn({2, Slow(kSupervised), kSharded, ""});
  std::vector<Losses> found = TrainedOn({2, Slow(kSupervised), kDevice, directory, 8});
  const std::vector<Losses> rest = TrainedOn({2, Slow(kSupervised), kSharded, directory});
  for (size_t rank = 0; rank < found.size(); ++rank) {
    found[rank].insert(found[rank].end(), rest[rank].begin(), rest[rank].end());
  }
  ExpectClose(found, expected);
}

}  // namespace
}  // namespace ssl
