// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/command_flags.h"

#include <gflags/gflags.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"

DEFINE_string(colour, "", "the name of a colour");
DEFINE_string(topic, "", "what to print");
DEFINE_bool(check_colour, false, "look only");

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ParseFlagsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<std::string>> Parse(const std::vector<std::string>& arguments) {
    return ParseFlags(arguments, {"topic"});
  }

  gflags::FlagSaver saver_;  // each test begins with the defaults
};

TEST_F(ParseFlagsTest, FlagsAreSet_TokensKeepTheirOrder) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> rest,
                       Parse({"b=1", "--colour=red", "+a=2", "-check_colour", "--", "--c"}));
  EXPECT_THAT(rest, ElementsAre("b=1", "+a=2", "--c"));
  EXPECT_EQ(FLAGS_colour, "red");
  EXPECT_TRUE(FLAGS_check_colour);
}

TEST_F(ParseFlagsTest, ValueMayBeTheNextArgument) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> rest, Parse({"--colour", "red", "a=1"}));
  EXPECT_THAT(rest, ElementsAre("a=1"));
  EXPECT_EQ(FLAGS_colour, "red");
}

TEST_F(ParseFlagsTest, OptionalValue_TakesNoFurtherArgument) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> rest, Parse({"--topic", "a=1"}));
  EXPECT_THAT(rest, ElementsAre("a=1"));
  EXPECT_EQ(FLAGS_topic, "all");
  ASSERT_OK(Parse({"--topic=LOSS"}));
  EXPECT_EQ(FLAGS_topic, "LOSS");
}

TEST_F(ParseFlagsTest, NoBefore_TurnsABooleanOff) {
  FLAGS_check_colour = true;
  ASSERT_OK(Parse({"--nocheck_colour"}));
  EXPECT_FALSE(FLAGS_check_colour);
}

TEST_F(ParseFlagsTest, UnknownFlag_NamesTheNearest) {
  for (const char* argument : {"--chek_colour", "-chek_colour", "--chek_colour=true"}) {
    EXPECT_THAT(Parse({argument}),
                StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("unknown flag '--chek_colour'"),
                                                                   HasSubstr("did you mean '--check_colour'?"))));
  }
  EXPECT_THAT(Parse({"--nocolour"}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unknown flag")));
}

TEST_F(ParseFlagsTest, KeyWithDashes_IsToldToHaveNone) {
  EXPECT_THAT(Parse({"--config.DATA.TRAIN.DATA_PATHS=[x]"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("keys have no dashes: config.DATA.TRAIN.DATA_PATHS=VALUE")));
  EXPECT_THAT(Parse({"--engine_name=knn"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("engine_name=VALUE")));
}

TEST_F(ParseFlagsTest, WrongMissingAndEmptyValues_AreRefused) {
  EXPECT_THAT(
      Parse({"--check_colour=maybe"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--check_colour is 'maybe', expected a value: true")));
  EXPECT_THAT(Parse({"--colour"}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--colour lacks its value")));
  EXPECT_THAT(Parse({"--colour="}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--colour is '', expected a value: the name")));
}

TEST_F(ParseFlagsTest, FlagThatStandsTwice_IsRefused) {
  EXPECT_THAT(Parse({"--colour=red", "a=1", "--colour", "blue"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("command line: --colour is given twice, as 'red' and as 'blue'")));
  ASSERT_OK(Parse({"--colour=red", "--colour=red"}));
  EXPECT_EQ(FLAGS_colour, "red");
}

}  // namespace
}  // namespace ssl
