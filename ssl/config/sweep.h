// SPDX-License-Identifier: Apache-2.0
//
// Command lines with choices: `lr=0.1,0.2 seed=0,1` stands for four runs, as in VISSL (hydra's multirun). Safe from
// any thread.
//
//   SSL_ASSIGN_OR_RETURN(const std::vector<SweepRun> runs, ExpandSweep(tokens));
//   if (runs.size() == 1) return Train(runs[0].tokens);
#ifndef SSL_CONFIG_SWEEP_H_
#define SSL_CONFIG_SWEEP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ssl {

constexpr size_t kMaxSweepRuns = 10000;

struct SweepRun {
  std::vector<std::string> tokens;   // The command line of this run: as many tokens as were given, in their places.
  std::vector<std::string> choices;  // Those of them that another run has differently: "config.SEED_VALUE=1".
};

// A token KEY=VALUE whose value has commas outside quotes, brackets and braces gives a choice, `config=FILE` and
// `+config/GROUP=FILE` too, unless a file of that very name, commas and all, is there. The runs are all combinations;
// the last token varies fastest. Without a choice there is one run with the tokens as they are. InvalidArgument names
// every token with an empty choice ("seed=0,"), or says that there are more than kMaxSweepRuns runs.
absl::StatusOr<std::vector<SweepRun>> ExpandSweep(const std::vector<std::string>& tokens);

}  // namespace ssl

#endif  // SSL_CONFIG_SWEEP_H_
