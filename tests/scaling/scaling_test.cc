// SPDX-License-Identifier: Apache-2.0
//
// The model against updates in virtual time, message by message, with this project's reducer and Sinkhorn.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"
#include "tests/scaling/clusters.h"
#include "tests/scaling/scaling_model.h"
#include "tests/scaling/simulated_update.h"

namespace ssl {
namespace {

constexpr uint64_t kSeed = 7;
constexpr double kTolerance = 0.005;  // docs/scaling.md states it

TEST(Cluster, ClosedFormIsThatOfMessages_WhenAllBeginAtOnce) {
  for (const NamedCluster& named : NamedClusters()) {
    for (const int64_t ranks : {1, 2, 8, 16, 64}) {
      for (const double bytes : {8.0, 1e5, 1e8}) {
        const Cluster cluster = named.Of(ranks);
        const std::vector<double> ends = AllReduceEnds(cluster, std::vector<double>(ranks, 3.0), bytes);
        EXPECT_THAT(ends, ::testing::Each(::testing::DoubleNear(3.0 + AllReduceSeconds(cluster, bytes), 1e-12)))
            << named.name << ", " << ranks << " ranks, " << bytes << " bytes";
      }
    }
  }
}

TEST(Cluster, NobodyIsThroughBeforeTheLastHasCome) {
  for (const Exchange exchange : {Exchange::kRing, Exchange::kHalving}) {
    const Cluster cluster{4, 2, {1e-6, 1e9}, {1e-5, 1e8}, exchange, 0.0};
    for (int64_t late = 0; late < cluster.ranks(); ++late) {
      std::vector<double> begin(cluster.ranks(), 0.0);
      begin[late] = 5.0;
      const std::vector<double> ends = AllReduceEnds(cluster, begin, 1e6);
      EXPECT_GE(*std::min_element(ends.begin(), ends.end()), 5.0);
    }
  }
}

TEST(Workload, IsThatOfResNet50) {
  const Workload workload = SwavResNet50(64, 0.001);
  int64_t trunk = 0;
  int64_t head = 0;
  for (const Part& part : workload.trunk) trunk += part.elements;
  EXPECT_EQ(trunk, 23508032);  // torchvision's without its classifier
  for (const Part& part : workload.head) head += part.elements;
  EXPECT_EQ(trunk + head, 28354752);
  EXPECT_EQ(workload.trunk.size(), 159U);
  EXPECT_NEAR(workload.compute(), 0.064, 1e-9);
}

struct Case {
  std::string cluster;
  bool sync_batch_norm;
  double noise;
};

class ModelTest : public ::testing::TestWithParam<std::tuple<Case, int64_t>> {};

// Few updates suffice: what is compared are means, and the noise of their parts averages out.
TEST_P(ModelTest, TellsTheTimeOfSimulatedUpdates) {
  const auto& [of, ranks] = GetParam();
  Workload workload = SwavResNet50(64, 1e-3);
  workload.sync_batch_norm = of.sync_batch_norm;
  workload.noise = of.noise;
  workload.update = 1e-3;
  const Cluster cluster = ClusterNamed(of.cluster).Of(ranks);
  ASSERT_OK_AND_ASSIGN(const SimulatedUpdate simulated,
                       SimulateUpdates(cluster, workload, of.noise > 0.0 ? 6 : 2, kSeed));
  const double forecast = ForecastUpdate(cluster, workload).total();
  RecordProperty("error", absl::StrCat(forecast / simulated.seconds - 1.0));
  EXPECT_NEAR(forecast / simulated.seconds, 1.0, kTolerance)
      << forecast * 1e3 << " ms, simulated " << simulated.seconds * 1e3 << " ms";
  const std::vector<int64_t> buckets = BucketBytes(workload);
  ASSERT_EQ(simulated.bucket_bytes.size(), buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_NEAR(simulated.bucket_bytes[i] / static_cast<double>(buckets[i]), 1.0, 0.02) << "bucket " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, ModelTest,
                         ::testing::Combine(::testing::Values(Case{"h100", false, 0.0}, Case{"h100", true, 0.0},
                                                              Case{"ethernet", false, 0.0}, Case{"ethernet", true, 0.0},
                                                              Case{"h100_ring", true, 0.02}, Case{"h100", false, 0.1},
                                                              Case{"ethernet", false, 0.05}),
                                            ::testing::Values(2, 4, 8, 16, 32, 64)));

}  // namespace
}  // namespace ssl
