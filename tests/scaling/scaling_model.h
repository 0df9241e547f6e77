// SPDX-License-Identifier: Apache-2.0
//
// How long an update takes on a cluster: in closed form but for the overlap of buckets with backward, which is a
// recursion over buckets. docs/scaling.md has the formulas and what they leave out.
#ifndef SSL_TESTS_SCALING_SCALING_MODEL_H_
#define SSL_TESTS_SCALING_SCALING_MODEL_H_

#include "tests/scaling/cluster.h"
#include "tests/scaling/workload.h"

namespace ssl {

// Seconds of an update and where they go.
struct UpdateForecast {
  double compute = 0.0;        // forward, backward, optimizer
  double gradients = 0.0;      // reductions that backward does not hide
  double all_gradients = 0.0;  // of all reductions, hidden or not; not part of the sum
  double batch_norm = 0.0;
  double sinkhorn = 0.0;
  double control = 0.0;  // the two operations of the loop
  double waiting = 0.0;  // for the slowest rank

  double total() const { return compute + gradients + batch_norm + sinkhorn + control + waiting; }
};

UpdateForecast ForecastUpdate(const Cluster& cluster, const Workload& workload);

}  // namespace ssl

#endif  // SSL_TESTS_SCALING_SCALING_MODEL_H_
