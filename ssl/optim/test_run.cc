// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/test_run.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/config/yaml.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/optim/register_optim.h"

namespace ssl {

ConfigNode Yaml(absl::string_view text) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> node = ParseYaml(text, "test.yaml", &warnings);
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? *std::move(node) : ConfigNode();
}

TestRun::TestRun(ConfigNode config) : config_(std::move(config)), communicator_(MakeLocalCommunicator()) {
  EXPECT_TRUE(RegisterOptim(&registries_).ok());
}

absl::StatusOr<std::unique_ptr<Schedule>> TestRun::MakeSchedule(const ConfigNode& params) {
  const ConfigNode* name = params.Find("name");
  return registries_.schedules.Make(name == nullptr ? "" : name->text(), params, context());
}

}  // namespace ssl
