// SPDX-License-Identifier: Apache-2.0
#include "tests/scaling/clusters.h"

#include <algorithm>

namespace ssl {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;

}  // namespace

Cluster NamedCluster::Of(int64_t ranks) const {
  Cluster cluster = host;
  cluster.ranks_per_host = std::min(ranks, host.ranks_per_host);
  cluster.hosts = ranks / cluster.ranks_per_host;
  return cluster;
}

const std::vector<NamedCluster>& NamedClusters() {
  static const std::vector<NamedCluster>& clusters = *new std::vector<NamedCluster>{
      {"h100", {1, 8, {1.0 * kMicro, 360 * kGiga}, {5.0 * kMicro, 40 * kGiga}, Exchange::kHalving, 4.4 * kMicro}},
      {"h100_ring", {1, 8, {1.0 * kMicro, 360 * kGiga}, {5.0 * kMicro, 40 * kGiga}, Exchange::kRing, 4.4 * kMicro}},
      {"v100", {1, 8, {1.0 * kMicro, 120 * kGiga}, {5.0 * kMicro, 5 * kGiga}, Exchange::kHalving, 4.4 * kMicro}},
      {"ethernet", {1, 1, {}, {25.0 * kMicro, 1.25 * kGiga}, Exchange::kRing, 10.0 * kMicro}},
  };
  return clusters;
}

const NamedCluster& ClusterNamed(const std::string& name) {
  const std::vector<NamedCluster>& all = NamedClusters();
  return *std::find_if(all.begin(), all.end(), [&](const NamedCluster& named) { return named.name == name; });
}

}  // namespace ssl
