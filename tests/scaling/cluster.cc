// SPDX-License-Identifier: Apache-2.0
#include "tests/scaling/cluster.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ssl {
namespace {

double Seconds(const Link& link, double bytes) { return link.latency + bytes / link.bytes_per_second; }

// One message of each rank at the same time; from(r) is who sends to r.
void Send(std::vector<double>& times, double seconds, const std::function<int64_t(int64_t)>& from) {
  const std::vector<double> before = times;
  for (size_t rank = 0; rank < times.size(); ++rank) {
    times[rank] = std::max(before[rank], before[from(static_cast<int64_t>(rank))]) + seconds;
  }
}

// Half of a ring's all-reduce: each rank of a host ends with its share of the sum, or with all shares.
void RoundWithinHosts(const Cluster& cluster, double bytes, std::vector<double>& times) {
  const int64_t ranks = cluster.ranks_per_host;
  const double seconds = Seconds(cluster.within, bytes / ranks);
  for (int64_t message = 1; message < ranks; ++message) {
    Send(times, seconds, [&](int64_t rank) { return rank / ranks * ranks + (rank + ranks - 1) % ranks; });
  }
}

void RingOfHosts(const Cluster& cluster, double share, std::vector<double>& times) {
  const double seconds = Seconds(cluster.between, share / cluster.hosts);
  for (int64_t message = 0; message < 2 * (cluster.hosts - 1); ++message) {
    Send(times, seconds,
         [&](int64_t rank) { return (rank + cluster.ranks() - cluster.ranks_per_host) % cluster.ranks(); });
  }
}

// To the host that differs in one bit of its number: halves of the share on the way there, doubles on the way back.
void HalvingOfHosts(const Cluster& cluster, double share, std::vector<double>& times) {
  const auto exchange = [&](int64_t bit) {
    const double seconds = Seconds(cluster.between, share / (2 * bit));
    Send(times, seconds, [&](int64_t rank) {
      const int64_t ranks = cluster.ranks_per_host;
      return ((rank / ranks) ^ bit) * ranks + rank % ranks;
    });
  };
  for (int64_t bit = 1; bit < cluster.hosts; bit *= 2) exchange(bit);
  for (int64_t bit = cluster.hosts / 2; bit > 0; bit /= 2) exchange(bit);
}

}  // namespace

double AllReduceSeconds(const Cluster& cluster, double bytes) {
  if (cluster.ranks() == 1) return 0.0;
  const auto hosts = static_cast<double>(cluster.hosts);
  const auto ranks = static_cast<double>(cluster.ranks_per_host);
  const double share = bytes / ranks;
  const double messages = cluster.exchange == Exchange::kRing ? hosts - 1.0 : std::log2(hosts);
  const double within = (ranks - 1.0) * Seconds(cluster.within, share);
  const double between =
      messages * cluster.between.latency + (hosts - 1.0) / hosts * share / cluster.between.bytes_per_second;
  return cluster.launch + 2.0 * (within + between);
}

std::vector<double> AllReduceEnds(const Cluster& cluster, const std::vector<double>& begin, double bytes) {
  std::vector<double> times = begin;
  if (cluster.ranks() == 1) return times;
  for (double& time : times) time += cluster.launch;
  const double share = bytes / static_cast<double>(cluster.ranks_per_host);
  RoundWithinHosts(cluster, bytes, times);
  cluster.exchange == Exchange::kRing ? RingOfHosts(cluster, share, times) : HalvingOfHosts(cluster, share, times);
  RoundWithinHosts(cluster, bytes, times);
  return times;
}

}  // namespace ssl
