// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/problem.h"

#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

ConfigNode At(const std::string& file, int line) { return ConfigNode::Scalar("v", /*quoted=*/false, {file, line}); }

TEST(ConfigProblemTest, WrongValue_NamesPlaceKeyValueAndExpectation) {
  const ConfigProblem problem = WrongValue(At("f.yaml", 3), "config.A", "a map");
  EXPECT_EQ(problem.ToString(), "f.yaml:3: config.A is 'v', expected a map");
  EXPECT_EQ(problem.path, "config.A");
}

TEST(FindValueTest, WalksMaps_AndReportsValuesOnTheWay) {
  ConfigNode config = ConfigNode::Map();
  config.SetPath("A.B", ConfigNode::FromInt(1));
  config.SetPath("N", ConfigNode::Null());
  config.SetPath("L", ConfigNode::FromInts({1}));
  std::vector<ConfigProblem> problems;
  EXPECT_EQ(FindValue(config, "", &problems), &config);
  EXPECT_EQ(FindValue(config, "A.B", &problems)->text(), "1");
  EXPECT_EQ(FindValue(config, "A.C", &problems), nullptr);
  EXPECT_EQ(FindValue(config, "N.C", &problems), nullptr);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(FindValue(config, "A.B.C", &problems), nullptr);
  EXPECT_EQ(FindValue(config, "L.0", &problems), nullptr);
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_EQ(problems[0].text, "config.A.B is '1', expected a map");
  EXPECT_EQ(problems[1].text, "config.L is a list, expected a map");
}

TEST(SortedProblemsTest, GoByFileAndLine_EachLineOnce) {
  std::vector<ConfigProblem> problems;
  for (const auto& [file, line, text] : std::vector<std::tuple<const char*, int, const char*>>{{"b.yaml", 1, "z"},
                                                                                               {"a.yaml", 10, "y"},
                                                                                               {"a.yaml", 2, "x"},
                                                                                               {"a.yaml", 2, "w"},
                                                                                               {"a.yaml", 2, "x"},
                                                                                               {"a.yaml", 10, "x"}}) {
    problems.push_back({{file, line}, text, ""});
  }
  EXPECT_EQ(ProblemsInOrder(SortedProblems(problems)),
            absl::InvalidArgumentError("a.yaml:2: x\na.yaml:2: w\na.yaml:10: y\na.yaml:10: x\nb.yaml:1: z"));
  EXPECT_EQ(ProblemsInOrder({problems[0], problems[1]}), absl::InvalidArgumentError("b.yaml:1: z\na.yaml:10: y"));
  EXPECT_OK(ProblemsInOrder(SortedProblems({})));
}

}  // namespace
}  // namespace ssl
