// SPDX-License-Identifier: Apache-2.0
//
// Interconnects by name; docs/scaling.md says where the figures come from.
#ifndef SSL_TESTS_SCALING_CLUSTERS_H_
#define SSL_TESTS_SCALING_CLUSTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/scaling/cluster.h"

namespace ssl {

struct NamedCluster {
  std::string name;
  Cluster host;  // one full host

  // The smallest cluster of full hosts that has `ranks`, or a part of one host.
  Cluster Of(int64_t ranks) const;
};

// "h100", "h100_ring", "v100", "ethernet".
const std::vector<NamedCluster>& NamedClusters();
const NamedCluster& ClusterNamed(const std::string& name);  // one of these

}  // namespace ssl

#endif  // SSL_TESTS_SCALING_CLUSTERS_H_
