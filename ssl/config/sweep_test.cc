// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/sweep.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// The runs as command lines; the error as the only one.
std::vector<std::string> Lines(const std::vector<std::string>& tokens) {
  const absl::StatusOr<std::vector<SweepRun>> runs = ExpandSweep(tokens);
  if (!runs.ok()) return {runs.status().ToString()};
  std::vector<std::string> lines;
  for (const SweepRun& run : *runs) lines.push_back(absl::StrJoin(run.tokens, " "));
  return lines;
}

TEST(ExpandSweepTest, NoChoice_IsOneRunWithTheTokensAsTheyAre) {
  const std::vector<std::string> tokens = {
      "config=a",  "config.A=[1,2]", "+config.B={x: 1, y: 2}", "config.C=\"a, b\"", "config.D='a,b'",
      "config.E=", "config.F=it's",  "config.G= 1 ",           "odd,token",         "config.H=[[1,'],'],2]"};
  ASSERT_OK_AND_ASSIGN(const std::vector<SweepRun> runs, ExpandSweep(tokens));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_THAT(runs[0].tokens, ElementsAreArray(tokens));
  EXPECT_THAT(runs[0].choices, IsEmpty());
  EXPECT_THAT(Lines({}), ElementsAre(""));
}

TEST(ExpandSweepTest, Choices_MakeAllCombinations_TheLastVariesFastest) {
  ASSERT_OK_AND_ASSIGN(const std::vector<SweepRun> runs,
                       ExpandSweep({"config.A=1,2", "config=base", "config.B=x, y ,z"}));
  std::vector<std::string> lines;
  for (const SweepRun& run : runs) {
    lines.push_back(absl::StrCat(absl::StrJoin(run.tokens, " "), " | ", absl::StrJoin(run.choices, " ")));
  }
  EXPECT_THAT(lines, ElementsAre("config.A=1 config=base config.B=x | config.A=1 config.B=x",
                                 "config.A=1 config=base config.B=y | config.A=1 config.B=y",
                                 "config.A=1 config=base config.B=z | config.A=1 config.B=z",
                                 "config.A=2 config=base config.B=x | config.A=2 config.B=x",
                                 "config.A=2 config=base config.B=y | config.A=2 config.B=y",
                                 "config.A=2 config=base config.B=z | config.A=2 config.B=z"));
}

TEST(ExpandSweepTest, Files_MayBeChosen) {
  EXPECT_THAT(Lines({"config=a,b/c.yaml"}), ElementsAre("config=a", "config=b/c.yaml"));
  EXPECT_THAT(Lines({"+config/g=a,b"}), ElementsAre("+config/g=a", "+config/g=b"));
}

TEST(ExpandSweepTest, ListsQuotesAndMaps_AreChoicesToo) {
  EXPECT_THAT(Lines({"k=[1,2],[3]"}), ElementsAre("k=[1,2]", "k=[3]"));
  EXPECT_THAT(Lines({"k={a: [1,2]},null"}), ElementsAre("k={a: [1,2]}", "k=null"));
  EXPECT_THAT(Lines({"k='a,b',\"c\\\",d\",''"}), ElementsAre("k='a,b'", "k=\"c\\\",d\"", "k=''"));
  EXPECT_THAT(Lines({"k=a=1,b=2"}), ElementsAre("k=a=1", "k=b=2"));
}

TEST(ExpandSweepTest, EmptyChoices_NameTheirTokens) {
  EXPECT_EQ(ExpandSweep({"a=1,", "b=2", "c=,3", "d=1,,2", "e=,"}).status(),
            absl::InvalidArgumentError(
                "command line: 'a=1,' has an empty choice, expected KEY=A,B or quotes around a comma\n"
                "command line: 'c=,3' has an empty choice, expected KEY=A,B or quotes around a comma\n"
                "command line: 'd=1,,2' has an empty choice, expected KEY=A,B or quotes around a comma\n"
                "command line: 'e=,' has an empty choice, expected KEY=A,B or quotes around a comma"));
}

TEST(ExpandSweepTest, RunsAreLimited) {
  const std::string ten = "k=0,1,2,3,4,5,6,7,8,9";
  EXPECT_EQ(Lines({ten, ten, ten, ten}).size(), 10000u);
  const std::vector<std::string> many(50, ten);
  EXPECT_EQ(ExpandSweep(many).status(),
            absl::InvalidArgumentError("command line: the choices make 100000 runs or more, expected at most 10000"));
}

TEST(ExpandSweepTest, FileWithACommaInItsName_IsNoChoice) {
  const std::string path = absl::StrCat(MakeTempDir("sweep"), "/a,b.yaml");
  EXPECT_EQ(Lines({absl::StrCat("config=", path)}).size(), 2u);
  std::ofstream(path) << "config: {}";
  EXPECT_THAT(Lines({absl::StrCat("config=", path), absl::StrCat("+config/base=", path)}),
              ElementsAre(absl::StrCat("config=", path, " +config/base=", path)));
  EXPECT_EQ(Lines({absl::StrCat("config.A=", path)}).size(), 2u);
}

}  // namespace
}  // namespace ssl
