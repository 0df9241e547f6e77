// SPDX-License-Identifier: Apache-2.0
//
// For tests: what a factory needs of a run, with this package registered and a configuration from YAML text.
#ifndef SSL_OPTIM_TEST_RUN_H_
#define SSL_OPTIM_TEST_RUN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/core/schedule.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// A YAML text as if it stood in "test.yaml"; a text that does not parse fails the test and gives null.
ConfigNode Yaml(absl::string_view text);

class TestRun {
 public:
  // config: the tree under "config".
  explicit TestRun(ConfigNode config);

  const Registries& registries() const { return registries_; }
  BuildContext context() { return {config_, registries_, *communicator_, /*seed=*/0, /*run_directory=*/""}; }

  // The schedule that `params` describes.
  absl::StatusOr<std::unique_ptr<Schedule>> MakeSchedule(const ConfigNode& params);

 private:
  ConfigNode config_;
  Registries registries_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace ssl

#endif  // SSL_OPTIM_TEST_RUN_H_
