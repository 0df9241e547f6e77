// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/compatibility_keys.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kIgnored = CompatibilityKey::Support::kIgnored;
constexpr auto kNotYet = CompatibilityKey::Support::kNotYet;

CompatibilityKeys Keys(std::vector<CompatibilityKey> list) {
  CompatibilityKeys keys;
  EXPECT_OK(keys.Add(std::move(list)));
  return keys;
}

// The problems of the value `text` for a key with the default `default_yaml`.
std::vector<std::string> ProblemsOf(const std::string& default_yaml, const std::string& text) {
  std::vector<ConfigProblem> problems;
  Keys({{"K", default_yaml, kIgnored, "n"}}).Check(Parsed("K: " + text), &problems);
  std::vector<std::string> lines;
  for (const ConfigProblem& problem : problems) lines.push_back(problem.ToString());
  return lines;
}

bool IsUnsupported(const std::string& default_yaml, const std::string& text) {
  return !Keys({{"K", default_yaml, kNotYet, "n"}}).Unsupported(Parsed("K: " + text)).empty();
}

TEST(CompatibilityKeysTest, Defaults_HaveTheirTypes_AndMapsAreFreeForm) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"False", "bool"},
                                                                  {"3", "int"},
                                                                  {"16_384", "int"},
                                                                  {"1e-5", "float"},
                                                                  {"tcp", "string"},
                                                                  {"\"3\"", "string"},
                                                                  {"''", "string"},
                                                                  {"null", "any"},
                                                                  {"{}", "any"},
                                                                  {"[]", "list"},
                                                                  {"[0, 1]", "list of int"},
                                                                  {"[0, 0.5]", "list of float"},
                                                                  {"[0.5, 1]", "list of float"},
                                                                  {"[a, 'b']", "list of string"},
                                                                  {"[a, 1, 2]", "list"},
                                                                  {"[[1], [2]]", "list"}};
  for (const auto& [text, type] : cases) {
    const CompatibilityKeys keys = Keys({{"A.B", text, kIgnored, "n"}});
    EXPECT_EQ(keys.entries()[0].TypeName(), type) << text;
    EXPECT_EQ(keys.defaults().FindPath("A.B")->free_form(), text == "{}") << text;
  }
}

TEST(CompatibilityKeysTest, BrokenKeys_AreAllNamed_AndChangeNothing) {
  CompatibilityKeys keys = Keys({{"A.B", "1", kIgnored, "n"}, {"F", "{}", kIgnored, "n"}});
  EXPECT_EQ(keys.Add({{"", "1", kIgnored, "n"},
                      {"X", "1", kIgnored, "n"},
                      {"A..C", "1", kIgnored, "n"},
                      {"D", "[1", kIgnored, "n"}}),
            absl::InvalidArgumentError("option catalog: path '' has an empty part\n"
                                       "option catalog: path 'A..C' has an empty part\n"
                                       "option catalog: default of 'D': '[1' is no flow value"));
  EXPECT_EQ(keys.Add({{"A.B", "1", kIgnored, "n"},
                      {"X", "1", kIgnored, "n"},
                      {"X", "1", kIgnored, "n"},
                      {"A", "1", kIgnored, "n"},
                      {"A.B.C", "1", kIgnored, "n"},
                      {"F.G", "1", kIgnored, "n"}}),
            absl::AlreadyExistsError("option catalog: key 'A.B' is declared twice\n"
                                     "option catalog: key 'X' is declared twice\n"
                                     "option catalog: key 'A' is declared twice\n"
                                     "option catalog: key 'A.B' is declared twice\n"
                                     "option catalog: key 'F' is declared twice"));
  EXPECT_THAT(keys.entries(), SizeIs(2));
  EXPECT_EQ(keys.defaults().Find("X"), nullptr);
}

TEST(CompatibilityKeysTest, Check_TakesWhatTheDefaultsTypeTakes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"false", "TRUE"}, {"3", "16_384"},     {"0.5", "1"},   {"0.5", "1e-5"},       {"tcp", "env"},
      {"tcp", "3"},      {"null", "[1]"},     {"{}", "x"},    {"{}", "{a: {b: 1}}"}, {"[]", "[a, 1, {b: 1}]"},
      {"[0]", "[]"},     {"[0, 1.5]", "[1]"}, {"[a]", "[1]"}, {"[[1]]", "[1]"}};
  for (const auto& [default_yaml, value] : cases) {
    EXPECT_THAT(ProblemsOf(default_yaml, value), IsEmpty()) << default_yaml << " " << value;
    EXPECT_THAT(ProblemsOf(default_yaml, "null"), IsEmpty()) << default_yaml;
  }
  EXPECT_THAT(ProblemsOf("[0]", "[null]"), IsEmpty());
}

TEST(CompatibilityKeysTest, Check_NamesValuesOfAnotherType) {
  EXPECT_THAT(ProblemsOf("false", "1"), ElementsAre("f.yaml:1: config.K is '1', expected true or false"));
  EXPECT_THAT(ProblemsOf("3", "3.5"), ElementsAre("f.yaml:1: config.K is '3.5', expected an integer"));
  EXPECT_THAT(ProblemsOf("0.5", "x"), ElementsAre("f.yaml:1: config.K is 'x', expected a number"));
  EXPECT_THAT(ProblemsOf("tcp", "[a]"), IsEmpty());
  EXPECT_THAT(ProblemsOf("0.025", "[0.1, 0.2]"), IsEmpty());
  EXPECT_THAT(ProblemsOf("tcp", "{a: 1}"), IsEmpty());
  EXPECT_THAT(ProblemsOf("[0]", "7"), ElementsAre("f.yaml:1: config.K is '7', expected a list"));
  EXPECT_THAT(ProblemsOf("[0]", "{a: 1}"), ElementsAre("f.yaml:1: config.K is a map, expected a list"));
  EXPECT_THAT(ProblemsOf("[0]", "[1, x,\n  y]"), ElementsAre("f.yaml:1: config.K.1 is 'x', expected an integer",
                                                             "f.yaml:2: config.K.2 is 'y', expected an integer"));
}

TEST(CompatibilityKeysTest, Check_NamesAValueWhereTheKeysSectionIs) {
  std::vector<ConfigProblem> problems;
  Keys({{"A.B", "1", kIgnored, "n"}}).Check(Parsed("A: 3"), &problems);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].ToString(), "f.yaml:1: config.A is '3', expected a map");
}

TEST(CompatibilityKeysTest, Unsupported_AreTheOtherValuesOfKeysThatAreNotYetRead) {
  const CompatibilityKeys keys = Keys({{"A.SPEED", "0.1", kNotYet, "no speed"},
                                       {"A.PIN", "true", kIgnored, "no need"},
                                       {"B", "[0, 1]", kNotYet, "no B"},
                                       {"C", "x", kNotYet, "no C"},
                                       {"D", "1", kNotYet, "no D"}});
  const std::vector<UnsupportedKey> found = keys.Unsupported(Parsed("C: x\nB: [0]\nA:\n  PIN: false\n  SPEED: 0.2\n"));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].path, "B");
  EXPECT_EQ(found[0].location.ToString(), "f.yaml:2");
  EXPECT_EQ(found[0].value, "a list");
  EXPECT_EQ(found[1].path, "A.SPEED");
  EXPECT_EQ(found[1].location.ToString(), "f.yaml:5");
  EXPECT_EQ(found[1].value, "'0.2'");
  EXPECT_EQ(found[1].note, "no speed");
  EXPECT_THAT(keys.Unsupported(keys.defaults()), IsEmpty());
  EXPECT_THAT(keys.Unsupported(Parsed("A: 3")), IsEmpty());
}

TEST(CompatibilityKeysTest, Unsupported_ComparesValuesAndNotTexts) {
  const std::vector<std::pair<std::string, std::string>> same = {
      {"false", "False"}, {"true", "\"TRUE\""},   {"1e-4", "0.0001"}, {"4096", "4_096"},       {"1", "1.0"},
      {"tcp", "'tcp'"},   {"[0, 1]", "[0, 1.0]"}, {"null", "~"},      {"''", "null"},          {"null", "\"\""},
      {"[]", "null"},     {"{}", "null"},         {"{}", "{}"},       {"{a: [1]}", "{a: [1]}"}};
  for (const auto& [default_yaml, value] : same) {
    EXPECT_FALSE(IsUnsupported(default_yaml, value)) << default_yaml << " " << value;
  }
  const std::vector<std::pair<std::string, std::string>> different = {
      {"false", "true"},    {"1", "2"},           {"1", "null"},     {"tcp", "TCP"},
      {"null", "0"},        {"[0, 1]", "[1, 0]"}, {"[0]", "[0, 0]"}, {"{}", "{a: 1}"},
      {"{a: 1}", "{b: 1}"}, {"{a: 1}", "{a: 2}"}, {"[0]", "0"},      {"1", "true"}};
  for (const auto& [default_yaml, value] : different) {
    EXPECT_TRUE(IsUnsupported(default_yaml, value)) << default_yaml << " " << value;
  }
}

}  // namespace
}  // namespace ssl
