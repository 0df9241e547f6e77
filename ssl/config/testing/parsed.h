// SPDX-License-Identifier: Apache-2.0
//
// Trees from YAML in a test.
#ifndef SSL_CONFIG_TESTING_PARSED_H_
#define SSL_CONFIG_TESTING_PARSED_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {

// An empty node, and a failure of the test, when `text` is no YAML. origin: the file of its places.
inline ConfigNode Parsed(absl::string_view text, const std::string& origin = "f.yaml") {
  absl::StatusOr<ConfigNode> node = ParseYaml(text, origin, nullptr);
  EXPECT_OK(node) << text;
  return node.ok() ? *node : ConfigNode();
}

}  // namespace ssl

#endif  // SSL_CONFIG_TESTING_PARSED_H_
