// SPDX-License-Identifier: Apache-2.0
//
// A launch of scripted ranks (scripted_rank.cc) whose output a test reads. For one thread.
//
//   LaunchCase launch(2, {"*:variable=RANK", "1:exit=3"});
//   ASSERT_OK_AND_ASSIGN(const LaunchOutcome outcome, launch.Run());
//   EXPECT_THAT(launch.Output(), UnorderedElementsAre("RANK=0", "[1] RANK=1"));
#ifndef SSL_LAUNCH_TESTING_LAUNCH_CASE_H_
#define SSL_LAUNCH_TESTING_LAUNCH_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/launch/local_launcher.h"

namespace ssl {

class LaunchCase {
 public:
  // `size` ranks, all here, which are never killed for lack of time; output goes to files of the test's.
  LaunchCase(int64_t size, std::vector<std::string> script);
  ~LaunchCase();
  LaunchCase(const LaunchCase&) = delete;
  LaunchCase& operator=(const LaunchCase&) = delete;

  LaunchOptions options;
  absl::StatusOr<LaunchOutcome> Run() { return LaunchLocalRanks(options); }

  // Lines so far.
  std::vector<std::string> Output() const;
  std::vector<std::string> Errors() const;

 private:
  std::string dir_;
};

// A new FIFO in a directory of the test's.
std::string MakeFifo();

}  // namespace ssl

#endif  // SSL_LAUNCH_TESTING_LAUNCH_CASE_H_
