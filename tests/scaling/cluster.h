// SPDX-License-Identifier: Apache-2.0
//
// What an all-reduce costs in the alpha-beta model: each message takes a latency and its bytes over a bandwidth.
// Hosts hold equally many ranks; each rank has a network interface of its own. An all-reduce goes in three parts:
// within each host its ranks get the sums of a share of the tensor, then all hosts add up their shares, then the
// shares go to all ranks of the host. Thakur et al. 2005, "Optimization of Collective Communication Operations in
// MPICH"; NCCL's own forecast (src/graph/tuning.cc) has the same form.
#ifndef SSL_TESTS_SCALING_CLUSTER_H_
#define SSL_TESTS_SCALING_CLUSTER_H_

#include <cstdint>
#include <vector>

namespace ssl {

struct Link {
  double latency = 0.0;           // seconds of a message
  double bytes_per_second = 1.0;  // each way
};

// How hosts add up a share.
enum class Exchange {
  kRing,     // 2 (hosts - 1) messages one after the other
  kHalving,  // by recursive halving and doubling: 2 log2(hosts) messages, of the same bytes in all
};

struct Cluster {
  int64_t hosts = 1;  // of kHalving a power of 2
  int64_t ranks_per_host = 1;
  Link within;   // between ranks of one host
  Link between;  // between ranks of two hosts
  Exchange exchange = Exchange::kRing;
  double launch = 0.0;  // seconds before an operation's first message

  int64_t ranks() const { return hosts * ranks_per_host; }
};

// The closed form: all ranks begin at once.
double AllReduceSeconds(const Cluster& cluster, double bytes);

// Message by message: begin[r] is when rank r comes; returns when each rank has the result. A rank sends its next
// message when it has received the one before; sending and receiving go on at the same time.
std::vector<double> AllReduceEnds(const Cluster& cluster, const std::vector<double>& begin, double bytes);

}  // namespace ssl

#endif  // SSL_TESTS_SCALING_CLUSTER_H_
