// SPDX-License-Identifier: Apache-2.0
//
// What a sweep says at its end: a row for each run.
#ifndef SSL_TOOLS_SWEEP_TABLE_H_
#define SSL_TOOLS_SWEEP_TABLE_H_

#include <cstddef>
#include <string>

#include "ssl/config/sweep.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct SweepOutcome {
  std::string directory;
  int exit_code = 0;
  std::string error;  // "" unless the run failed
};

// "sweep_0   finished  config.SEED_VALUE=0  loss=2.88 knn.trained=0.97\n": number, end and choices of a run, the mean
// loss of its last epoch (metrics.json) and its figures (results.json), or its error. Lines go on below, indented,
// where they would be wider than 120 columns.
std::string SweepRow(size_t number, const SweepRun& run, const SweepOutcome& outcome, FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_TOOLS_SWEEP_TABLE_H_
